// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.RlcConstants;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_client;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_lease;
import java.lang.ref.Cleaner;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * The life of a client or a Redlock, and its cleaner: it has no way to them, so that they can be
 * collected. The handle is freed by the cleaner only, so that any call may be under way.
 */
final class CallSession implements Runnable {
  static final Cleaner CLEANER = Cleaner.create();

  /** The begin, and the end, of the line of the library's log. */
  private static final String WARNING = "warning ";
  private static final String SELF_WAIT = ": a thread waits for a lock that it holds itself";

  private final SWIGTYPE_p_rl_client handle;

  /** Lines of the log that were taken from the library, for a later logTo(). */
  private final Queue<String> unread = new ConcurrentLinkedQueue<>();

  private volatile boolean isClosed;
  private @Nullable LogBridge bridge;
  private @Nullable CredentialsSource source;

  /** The client, and its leases: the collector finds them in any order. */
  private final AtomicInteger users = new AtomicInteger(1);

  /** Leases that were dropped while they were held. They stay held until close(). */
  private final Queue<SWIGTYPE_p_rl_lease> dropped = new ConcurrentLinkedQueue<>();

  CallSession(SWIGTYPE_p_rl_client handle) {
    this.handle = handle;
  }

  SWIGTYPE_p_rl_client handle() {
    return handle;
  }

  void close() {
    Threads.blocking(
        () -> {
          Rlc.client_shutdown(handle);
          return true;
        });
    isClosed = true;
    freeDropped();
    endCredentials();
    endLog(true);
  }

  LogBridge logTo(System.Logger logger) {
    LogBridge made = new LogBridge(handle, Text.given(logger, "logger"), unread);
    synchronized (this) {
      if (bridge != null) {
        bridge.close();
      }
      bridge = made;
    }
    made.watch();
    if (!unread.isEmpty()) {
      Threads.tell(made::writeAll);
    }
    return made;
  }

  /** Writes that a thread waits for its own lock, if the log says so and no logTo() writes it. */
  void noticeSelfWait(List<String> names) {
    for (String line : selfWaits(names.stream().map(CallSession::selfWait).toList())) {
      Warnings.ofLog(line);
    }
  }

  private static String selfWait(String name) {
    return "lock " + Text.quoted(name) + SELF_WAIT;
  }

  /** Those of the lines that the log has as warnings; all others are kept for logTo(). */
  private synchronized List<String> selfWaits(List<String> wanted) {
    List<String> found = new ArrayList<>();
    if (bridge != null && !bridge.isClosed()) {
      return found;
    }
    for (String line; !(line = nextUnread()).isEmpty(); ) {
      String text = line.startsWith(WARNING) ? line.substring(WARNING.length()) : "";
      if (wanted.contains(text)) {
        found.add(text);
        continue;
      }
      unread.add(line);
      if (unread.size() > RlcConstants.RL_MAX_LOG_LINES) {
        unread.poll();
      }
    }
    return found;
  }

  private String nextUnread() {
    return Text.of(Text.read(buffer -> Rlc.client_log_next(handle, buffer)));
  }

  void credentialsFrom(CredentialsProvider provider) {
    CredentialsSource made = new CredentialsSource(handle, Text.given(provider, "provider"));
    endCredentials();
    synchronized (this) {
      source = made;
    }
    made.watch();
  }

  private void endCredentials() {
    CredentialsSource last;
    synchronized (this) {
      last = source;
    }
    if (last != null) {
      last.close();
    }
  }

  private void endLog(boolean isWritten) {
    LogBridge last;
    synchronized (this) {
      last = bridge;
    }
    if (last != null) {
      if (isWritten) {
        last.writeAll();
      }
      last.close();
    }
  }

  private void freeDropped() {
    for (SWIGTYPE_p_rl_lease lease; (lease = dropped.poll()) != null; ) {
      Rlc.lease_free(lease);
    }
  }

  /** Called by the cleaner when no reference to the client or a lease of it is left. */
  @Override
  public void run() {
    if (!isClosed) {
      Warnings.clientDropped();
    }
    leave();
  }

  void enter() {
    users.incrementAndGet();
  }

  /** The last caller frees the handle: no other reference to it is left. */
  private void leave() {
    if (users.decrementAndGet() == 0 && (isClosed || dropped.isEmpty())) {
      endCredentials();
      endLog(false);
      // It waits for the server, and all cleaning shares a thread.
      Threads.daemon("redlatch-close", () -> Rlc.client_close(handle)).start();
    }
  }

  /** Called by the cleaner when no reference to the lease is left. */
  void leave(SWIGTYPE_p_rl_lease lease) {
    if (Rlc.lease_state(lease) == RlcConstants.RL_LEASE_HELD) {
      Warnings.leaseDropped(Lease.nameOf(lease));
      dropped.add(lease);
      if (isClosed) {
        freeDropped();
      }
    } else {
      Rlc.lease_free(lease);
    }
    leave();
  }

  /** Connects. An interrupt ends that, and the thread stays interrupted. */
  void connect(long waitMs) {
    try (Request request =
        Request.of("connect", "", Rlc.client_connect_start(handle, waitMs))) {
      reach(request, "connect");
    }
  }

  /** Asks each server for what endangers locks there. Otherwise as connect(). */
  List<Finding> check(long waitMs) {
    try (Request request = Request.of("check", "", Rlc.client_check_start(handle, waitMs))) {
      reach(request, "check");
      return InfoReader.findingsOf(request.takeInfo());
    }
  }

  private static void reach(Request request, String op) {
    try {
      if (Thread.interrupted()) {
        throw new InterruptedException();
      }
      request.await();
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw RedlatchException.of(Status.CANCELLED, op, "", "");
    }
  }

  List<NodeInfo> info() {
    return InfoReader.nodesOf(Errors.check("info", "", err -> Rlc.client_info(handle, err)));
  }

  /** The text of an option, "" for none. */
  String option(byte[] name) {
    return Text.of(Text.read(buffer -> Rlc.client_option(handle, name, buffer)));
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static java.nio.charset.StandardCharsets.US_ASCII;

import io.redlatch.internal.rlc.Rlc;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * An election by its name, with the id of this candidate. Any thread may use it, and it is cheap to
 * make.
 *
 * <pre>{@code
 * try (Term term = client.election("report").campaign()) {
 *   while (term.isLeader()) {
 *     write(term.number());
 *   }
 * }
 * }</pre>
 *
 * <p>The leader holds the lock of the same name: a holder of {@link Redlatch#lock} with that name
 * excludes leaders, and does not lead. {@link #elector} campaigns again after each term.
 */
public final class Election {
  static final String OP = "campaign";
  private static final byte[] ID = "id".getBytes(US_ASCII);
  private static final Path HOST = Path.of("/proc/sys/kernel/hostname");

  private final Redlatch client;
  private final NamedLock lock;
  private final byte[] name;
  private final String id;
  private final LockOptions options;

  Election(Redlatch client, NamedLock lock, byte[] name, String id, LockOptions options) {
    this.client = client;
    byte[] bytes = Text.bytes(id, "id");
    this.lock =
        lock.with(options)
            .of(made -> Rlc.acquire_options_set(made, ID, bytes, null)); // the acquire has mistakes
    this.name = name;
    this.id = id;
    this.options = options;
  }

  /** The id of a candidate that names none. */
  static String defaultId(@Nullable String podName) {
    return podName != null && !podName.isEmpty()
        ? podName
        : hostName() + ":" + ProcessHandle.current().pid();
  }

  private static String hostName() {
    try {
      return Files.readString(HOST).strip();
    } catch (IOException failure) {
      return "localhost";
    }
  }

  /**
   * Returns the same election with another id of this candidate, of 1 to 256 bytes. Others read it
   * while this candidate waits and while it leads. Default: the environment variable POD_NAME, or
   * the host name and the process id, such as "host:4711".
   */
  public Election id(String id) {
    return new Election(client, lock, name, Text.given(id, "id"), options);
  }

  /**
   * Returns the same election with other options of the lock, such as its ttl. The option
   * maxLocalHandoffs is always 0, and reentrant and other formats are refused by the campaign.
   */
  public Election with(LockOptions options) {
    return new Election(client, lock, name, id, Text.given(options, "options"));
  }

  /** The name of the election, decoded as UTF-8. */
  public String name() {
    return lock.name();
  }

  /** The id of this candidate. */
  public String id() {
    return id;
  }

  /**
   * Campaigns until this candidate leads. It waits in the queue without a limit, also during an
   * outage of the server. An exception never means that it leads.
   *
   * @throws InterruptedException if the thread is interrupted; nothing is left behind then.
   * @throws RedlatchException with the status of the failure: {@link Status#E_INVALID} if the id or
   *     an option is wrong.
   */
  public Term campaign() throws InterruptedException {
    return campaign(NamedLock.FOREVER);
  }

  /**
   * The same as campaign(), for at most `wait`; with zero it tries once.
   *
   * @throws NotAcquiredException if the wait timed out, or one try found another holder.
   */
  public Term campaign(Duration wait) throws InterruptedException {
    return campaign(Text.waitMs(wait));
  }

  private Term campaign(long waitMs) throws InterruptedException {
    return new Term(lock.await(OP, waitMs, lock::leaseOf), id, null);
  }

  /** Asks the server for the leader; empty without a leader. Changes nothing. */
  public Optional<Leader> leader() {
    return client.electionState(name).leader();
  }

  /**
   * Asks the server for the ids of the leader and of the candidates that wait, at most 256 of them,
   * in the order of the queue. Changes nothing.
   */
  public List<String> participants() {
    return client.electionState(name).participants();
  }

  /**
   * Runs `action` with the present leader, and then at each change; with an empty value while there
   * is no leader. Terms never fall; a term that ends before it is read is left out. The action runs
   * in a thread of redlatch, and may block it: then it gets the next leader later. An exception of
   * the action is logged.
   *
   * <p>Does not block. The observer waits for the end of an outage. Other failures are logged, and
   * retried; {@link Status#E_INVALID} and {@link Status#E_UNSUPPORTED} end the observer.
   *
   * @return the observer, whose close() ends this; close() of the client ends it, too.
   */
  public LeaderObserver observe(ElectionAction<Optional<Leader>> action) {
    LeaderObserver observer = new LeaderObserver(this, Text.given(action, "action"));
    observer.ask();
    return observer;
  }

  /** Returns a builder of an elector, which campaigns in the background, again after each term. */
  public LeaderElector.Builder elector() {
    return new LeaderElector.Builder(this);
  }

  NamedLock lock() {
    return lock;
  }

  /** Waits for another leader than that of the position; -1: for the present state. */
  Request watch(long seen) {
    return client.start(
        "observe", name(), handle -> Rlc.leader_watch_start(handle, name, seen, NamedLock.FOREVER));
  }

  /**
   * Refuses a wrong option now.
   *
   * @throws RedlatchException with {@link Status#E_INVALID}.
   */
  void check() {
    options.check(OP);
    OptionValues.check(OP, ID, Text.bytes(id, "id"));
  }

  @Override
  public String toString() {
    return "Election[" + name() + ", " + id + "]";
  }
}

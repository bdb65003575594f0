// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.RlcConstants;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_acquire_options;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_lease;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_request;
import java.lang.ref.Cleaner;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * What a client and a Redlock share. It has no way to them, so that they can be collected while
 * something waits in the pump. The handle is freed by the cleaner only, so that any call may be
 * under way.
 */
final class Session implements Runnable {
  static final Cleaner CLEANER = Cleaner.create();

  /** One try, or no wait. */
  static final long NO_WAIT = 0;

  /** What starts an acquisition. */
  interface Starter {
    @Nullable SWIGTYPE_p_rl_request start(
        byte[] name, long waitMs, @Nullable SWIGTYPE_p_rl_acquire_options options);
  }

  private final Runnable shutdown;
  private final Runnable free;
  private volatile boolean isClosed;

  /** The client, and its leases: the collector finds them in any order. */
  private final AtomicInteger users = new AtomicInteger(1);

  /** Leases that were dropped while they were held. They stay held until close(). */
  private final Queue<SWIGTYPE_p_rl_lease> dropped = new ConcurrentLinkedQueue<>();

  Session(Runnable shutdown, Runnable free) {
    this.shutdown = shutdown;
    this.free = free;
  }

  void close() {
    Threads.blocking(
        () -> {
          shutdown.run();
          return true;
        });
    isClosed = true;
    freeDropped();
  }

  private void freeDropped() {
    for (SWIGTYPE_p_rl_lease lease; (lease = dropped.poll()) != null; ) {
      Rlc.lease_free(lease);
    }
  }

  /** By the cleaner, when nobody has the client or a lease of it. */
  @Override
  public void run() {
    if (!isClosed) {
      Warnings.leaked("client", "");
    }
    leave();
  }

  void enter() {
    users.incrementAndGet();
  }

  /** Whoever comes to this last has nobody beside it. */
  private void leave() {
    if (users.decrementAndGet() == 0 && (isClosed || dropped.isEmpty())) {
      // It waits for the server, and all cleaning shares a thread.
      Threads.daemon("redlatch-close", free).start();
    }
  }

  /** By the cleaner, when nobody has the lease. */
  void leave(SWIGTYPE_p_rl_lease lease, String name) {
    if (Rlc.lease_state(lease) == RlcConstants.RL_LEASE_HELD) {
      Warnings.leaked("lease", name);
      dropped.add(lease);
      if (isClosed) {
        freeDropped();
      }
    } else {
      Rlc.lease_free(lease);
    }
    leave();
  }

  void connect(Request started) {
    try (Request request = started) {
      Status status;
      try {
        status = request.await();
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
        status = Status.CANCELLED;
      }
      if (status != Status.OK) {
        throw request.failure(status);
      }
    }
  }

  private Request start(NamedLock lock, long waitMs) {
    SWIGTYPE_p_rl_acquire_options options = lock.options().make(lock.owner());
    try {
      SWIGTYPE_p_rl_request request = lock.starter().start(lock.bytes(), waitMs, options);
      return Request.of("acquire", lock.name(), request);
    } finally {
      Rlc.acquire_options_free(options);
    }
  }

  Lease acquire(NamedLock lock, long waitMs) throws InterruptedException {
    if (Thread.interrupted()) {
      throw new InterruptedException();
    }
    try (Request request = start(lock, waitMs)) {
      return granted(lock, request, request.await());
    }
  }

  Lease acquireUninterruptibly(NamedLock lock, long waitMs) {
    try (Request request = start(lock, waitMs)) {
      return granted(lock, request, request.awaitUninterruptibly());
    }
  }

  private Lease granted(NamedLock lock, Request request, Status status) {
    if (status != Status.OK) {
      throw request.failure(status);
    }
    return new Lease(lock, this, request.takeLease());
  }

  CompletableFuture<Lease> acquireAsync(NamedLock lock, long waitMs, Executor executor) {
    CompletableFuture<Lease> future = new CompletableFuture<>();
    Request request = start(lock, waitMs);
    try {
      request.whenDone(status -> handOver(lock, request, status, future, executor));
    } catch (RedlatchException failure) {
      request.close();
      throw failure;
    }
    future.whenComplete(
        (lease, failure) -> {
          // Cancelled, or completed by somebody else.
          if (request.takeBack()) {
            request.close();
          }
        });
    return future;
  }

  private void handOver(
      NamedLock lock,
      Request request,
      Status status,
      CompletableFuture<Lease> future,
      Executor executor) {
    try {
      executor.execute(() -> finish(lock, request, status, future));
    } catch (RuntimeException | Error refused) {
      request.close();
      future.completeExceptionally(refused);
    }
  }

  private void finish(
      NamedLock lock, Request request, Status status, CompletableFuture<Lease> future) {
    try (request) {
      // Whoever has cancelled it meanwhile has nobody to give it to.
      if (!future.isDone()) {
        Lease lease = granted(lock, request, status);
        if (!future.complete(lease)) {
          lease.close();
        }
      }
    } catch (RedlatchException failure) {
      future.completeExceptionally(failure);
    }
  }
}

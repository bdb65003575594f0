// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_acquire_options;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_request;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.locks.Lock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A lock by its name, with the options to take it with. Each acquisition is a lease of its own,
 * which any thread may close. Any number of threads may use it; it costs nothing to make another.
 */
public final class NamedLock {
  /** What starts an acquisition. */
  interface Starter {
    @Nullable SWIGTYPE_p_rl_request start(
        byte[] name, long waitMs, @Nullable SWIGTYPE_p_rl_acquire_options options);
  }

  private static final long FOREVER = -1;

  private final Object client; // not collected while this can be used
  private final CallSession session;
  private final Starter starter;
  private final byte[] name;
  private final String text; // the name, for all leases
  private final LockOptions options;
  private final @Nullable Supplier<byte[]> owner;

  NamedLock(
      Object client,
      CallSession session,
      Starter starter,
      byte[] name,
      LockOptions options,
      @Nullable Supplier<byte[]> owner) {
    this.client = client;
    this.session = session;
    this.starter = starter;
    this.name = name;
    this.text = Text.of(name);
    this.options = options;
    this.owner = owner;
  }

  /** The same lock, to be taken with other options. */
  public NamedLock with(LockOptions options) {
    return new NamedLock(client, session, starter, name, Text.given(options, "options"), owner);
  }

  /** The name, as UTF-8 says it. */
  public String name() {
    return text;
  }

  /**
   * Acquires the lock, waiting in line as long as it takes, and riding out outages of the server.
   *
   * @throws InterruptedException if the thread is interrupted; nothing is left behind then.
   * @throws RedlatchException with the status of what failed.
   */
  public Lease acquire() throws InterruptedException {
    return acquire(FOREVER);
  }

  /**
   * Acquires the lock, waiting for at most `wait`; with none, as tryAcquire() does.
   *
   * @throws NotAcquiredException if somebody else had it all the time.
   * @throws InterruptedException if the thread is interrupted; nothing is left behind then.
   * @throws RedlatchException with the status of what failed: {@link Status#E_UNAVAILABLE} if the
   *     server was away.
   */
  public Lease acquire(Duration wait) throws InterruptedException {
    return acquire(Text.waitMs(wait));
  }

  private Lease acquire(long waitMs) throws InterruptedException {
    if (Thread.interrupted()) {
      throw new InterruptedException();
    }
    try (Request request = start(waitMs)) {
      request.await(() -> noticeLongWait(request));
      return leaseOf(request);
    }
  }

  /** As acquire(), but that an interrupt does not end it; the thread stays interrupted. */
  Lease acquireUninterruptibly() {
    return acquireUninterruptibly(FOREVER);
  }

  private Lease acquireUninterruptibly(long waitMs) {
    try (Request request = start(waitMs)) {
      request.awaitUninterruptibly(() -> noticeLongWait(request));
      return leaseOf(request);
    }
  }

  /** The reason may be in the log only, such as that this thread has the lock itself. */
  private void noticeLongWait(Request request) {
    request.lookAtWaiter();
    session.noticeSelfWait(name());
  }

  private Request start(long waitMs) {
    SWIGTYPE_p_rl_acquire_options made = options.make(owner == null ? null : owner.get());
    try {
      return Request.of("acquire", name(), starter.start(name, waitMs, made));
    } finally {
      Rlc.acquire_options_free(made);
    }
  }

  private Lease leaseOf(Request request) {
    return new Lease(this, session, request.takeLease());
  }

  /**
   * Acquires the lock if it is free, and nobody waits for it.
   *
   * @throws RedlatchException with the status of what failed.
   */
  public Optional<Lease> tryAcquire() {
    try {
      return Optional.of(acquireUninterruptibly(0));
    } catch (NotAcquiredException busy) {
      return Optional.empty();
    }
  }

  /** As acquire(wait), but empty if somebody else had it all the time. */
  public Optional<Lease> tryAcquire(Duration wait) throws InterruptedException {
    try {
      return Optional.of(acquire(wait));
    } catch (NotAcquiredException busy) {
      return Optional.empty();
    }
  }

  /**
   * Acquires the lock without a thread. Cancel the future to leave the line. What depends on it
   * runs in a thread of redlatch's, and may wait there.
   *
   * @throws RedlatchException with {@link Status#E_INVALID} if an option is wrong. All else is a
   *     failure of the future.
   */
  public CompletableFuture<Lease> acquireAsync() {
    return acquireAsync(FOREVER, Runnable::run);
  }

  /** As acquireAsync(), for at most `wait`: the future then fails with NotAcquiredException. */
  public CompletableFuture<Lease> acquireAsync(Duration wait) {
    return acquireAsync(wait, Runnable::run);
  }

  /** As acquireAsync(wait); what depends on it runs in `executor`. */
  public CompletableFuture<Lease> acquireAsync(Duration wait, Executor executor) {
    return acquireAsync(Text.waitMs(wait), executor);
  }

  private CompletableFuture<Lease> acquireAsync(long waitMs, Executor executor) {
    Text.given(executor, "executor");
    CompletableFuture<Lease> future = new CompletableFuture<>();
    Request request = start(waitMs);
    try {
      // Not in the pump: an executor may run it there and then, or have no room for it yet.
      request.watch(() -> Threads.tell(() -> handOver(request, future, executor)));
    } catch (RedlatchException failure) {
      request.close();
      throw failure;
    }
    future.whenComplete(
        (lease, failure) -> {
          // Cancelled, or completed by somebody else; maybe while it waits for its executor.
          if (request.claim()) {
            request.takeBack();
            request.close();
          }
        });
    return future;
  }

  private void handOver(Request request, CompletableFuture<Lease> future, Executor executor) {
    try {
      executor.execute(() -> finish(request, future));
    } catch (RuntimeException | Error refused) {
      future.completeExceptionally(refused);
    }
  }

  private void finish(Request request, CompletableFuture<Lease> future) {
    if (!request.claim()) {
      return;
    }
    try (request) {
      Lease lease = leaseOf(request);
      if (!future.complete(lease)) {
        lease.close();
      }
    } catch (RuntimeException | Error failure) {
      future.completeExceptionally(failure);
    }
  }

  /**
   * Holds the lock while `work` goes on.
   *
   * @return its result.
   * @throws LockLostException if the lock was lost meanwhile: others may have worked at the same
   *     time. The exception of the work itself comes first, and has this as a suppressed one.
   * @throws Exception what the work throws.
   */
  @SuppressWarnings("try") // The lease only has to end with the block.
  public <T> T call(Callable<T> work) throws Exception {
    Text.given(work, "work");
    try (Lease lease = acquire()) {
      return work.call();
    }
  }

  /**
   * A view as a {@link Lock} that is bound to threads, and reentrant: the thread that has locked it
   * may lock it again, and it alone may unlock. Keep it: two views are two owners. It has no
   * conditions. tryLock() with a time is false also if no answer came in that time. After a loss,
   * to lock it again fails with {@link LockLostException}, and to unlock with an {@link
   * IllegalMonitorStateException} that has it as its cause. What fails otherwise is a {@link
   * RedlatchException}.
   */
  public Lock asLock() {
    return new LockView(this, true, new ThreadLocal<>());
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_acquire_options;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_request;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A lock by its name, or by several names together, with the options to acquire it with. Each
 * acquisition is a lease of its own, which any thread may close. Any thread may use it, and it is
 * cheap to make.
 */
public final class NamedLock {
  /** Starts an acquisition. */
  interface Starter {
    @Nullable SWIGTYPE_p_rl_request start(
        long waitMs, @Nullable SWIGTYPE_p_rl_acquire_options options);
  }

  /** Sets the options that make the kind of a lock, and those that only this kind has. */
  interface Kind {
    void set(SWIGTYPE_p_rl_acquire_options options);
  }

  static final long FOREVER = -1;
  private static final String ACQUIRE = "acquire";

  private final Object client; // not collected while this can be used
  private final CallSession session;
  private final Starter starter;
  private final List<String> names; // for all leases
  private final LockOptions options;
  private final @Nullable Kind kind;

  NamedLock(
      Object client,
      CallSession session,
      Starter starter,
      List<String> names,
      LockOptions options,
      @Nullable Kind kind) {
    this.client = client;
    this.session = session;
    this.starter = starter;
    this.names = names;
    this.options = options;
    this.kind = kind;
  }

  /** Returns the same lock with other options. */
  public NamedLock with(LockOptions options) {
    return new NamedLock(client, session, starter, names, Text.given(options, "options"), kind);
  }

  /** Returns the same lock as one of another kind. */
  NamedLock of(Kind other) {
    return new NamedLock(client, session, starter, names, options, other);
  }

  /** The name of the lock, decoded as UTF-8; the first one of several. */
  public String name() {
    return names.get(0);
  }

  /** All names of the lock, decoded as UTF-8; one of most locks. */
  public List<String> names() {
    return names;
  }

  /** The name that messages show if their text has none; empty for several names. */
  private String nameInMessages() {
    return names.size() == 1 ? name() : "";
  }

  /**
   * Acquires the lock. It waits in the queue without a limit, also during an outage of the server.
   *
   * @throws InterruptedException if the thread is interrupted; nothing is left behind then.
   * @throws RedlatchException with the status of the failure.
   */
  public Lease acquire() throws InterruptedException {
    return acquire(FOREVER);
  }

  /**
   * Acquires the lock. It waits in the queue for at most `wait`; with zero it tries once.
   *
   * @throws NotAcquiredException if the wait timed out, or one try found the lock busy: another
   *     holder has it.
   * @throws InterruptedException if the thread is interrupted; nothing is left behind then.
   * @throws RedlatchException with the status of the failure: {@link Status#E_UNAVAILABLE} if the
   *     server could not be reached in time.
   */
  public Lease acquire(Duration wait) throws InterruptedException {
    return acquire(Text.waitMs(wait));
  }

  private Lease acquire(long waitMs) throws InterruptedException {
    return await(ACQUIRE, waitMs, this::leaseOf);
  }

  /** As acquire(wait), but `result` takes the result of the request. */
  <T> T await(String op, long waitMs, Function<Request, T> result) throws InterruptedException {
    if (Thread.interrupted()) {
      throw new InterruptedException();
    }
    try (Request request = start(op, waitMs)) {
      request.await(() -> noticeLongWait(request));
      return result.apply(request);
    }
  }

  /** The same as acquire(), but an interrupt does not end it; the thread stays interrupted. */
  Lease acquireUninterruptibly() {
    return acquireUninterruptibly(FOREVER);
  }

  private Lease acquireUninterruptibly(long waitMs) {
    try (Request request = start(ACQUIRE, waitMs)) {
      request.awaitUninterruptibly(() -> noticeLongWait(request));
      return leaseOf(request);
    }
  }

  /** The log may be the only place of the reason, such as that this thread has the lock itself. */
  private void noticeLongWait(Request request) {
    request.lookAtWaiter();
    session.noticeSelfWait(names);
  }

  private Request start(String op, long waitMs) {
    SWIGTYPE_p_rl_acquire_options made = options.make(kind);
    try {
      return Request.of(op, nameInMessages(), starter.start(waitMs, made));
    } finally {
      Rlc.acquire_options_free(made);
    }
  }

  Lease leaseOf(Request request) {
    return new Lease(this, session, request.takeLease(), names);
  }

  /**
   * Acquires the lock with one try; empty if it is held or waited for.
   *
   * @throws RedlatchException with the status of the failure.
   */
  public Optional<Lease> tryAcquire() {
    try {
      return Optional.of(acquireUninterruptibly(0));
    } catch (NotAcquiredException busy) {
      return Optional.empty();
    }
  }

  /** The same as acquire(wait), but empty if the wait timed out. */
  public Optional<Lease> tryAcquire(Duration wait) throws InterruptedException {
    try {
      return Optional.of(acquire(wait));
    } catch (NotAcquiredException busy) {
      return Optional.empty();
    }
  }

  /** The same as tryAcquire(wait); with a time below 0 it tries once. */
  public Optional<Lease> tryAcquire(long time, TimeUnit unit) throws InterruptedException {
    return tryAcquire(Text.wait(time, unit));
  }

  /**
   * Acquires the lock without a thread that waits. Cancel the future to leave the queue. Dependent
   * stages run in a thread of redlatch, and may block there.
   *
   * @throws RedlatchException with {@link Status#E_INVALID} if an option is wrong. The future has
   *     all other failures.
   */
  public CompletableFuture<Lease> acquireAsync() {
    return acquireAsync(FOREVER, Runnable::run);
  }

  /**
   * The same as acquireAsync(), for at most `wait`; the future then fails with
   * NotAcquiredException.
   */
  public CompletableFuture<Lease> acquireAsync(Duration wait) {
    return acquireAsync(wait, Runnable::run);
  }

  /** The same as acquireAsync(wait); dependent stages run in `executor`. */
  public CompletableFuture<Lease> acquireAsync(Duration wait, Executor executor) {
    return acquireAsync(Text.waitMs(wait), executor);
  }

  private CompletableFuture<Lease> acquireAsync(long waitMs, Executor executor) {
    Text.given(executor, "executor");
    CompletableFuture<Lease> future = new CompletableFuture<>();
    Request request = start(ACQUIRE, waitMs);
    try {
      // Not in the pump: an executor may run it there and then, or have no room for it yet.
      request.watch(() -> Threads.tell(() -> handOver(request, future, executor)));
    } catch (RedlatchException failure) {
      request.close();
      throw failure;
    }
    future.whenComplete(
        (lease, failure) -> {
          // Cancelled, or completed by another thread; maybe while it waits for its executor.
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
   * Holds the lock while `work` runs.
   *
   * @return the result of the work.
   * @throws LockLostException if the lock was lost meanwhile: others may have worked at the same
   *     time. If the work throws too, its exception has this one as a suppressed one.
   * @throws Exception the exception of the work.
   */
  @SuppressWarnings("try") // The lease only has to end with the block.
  public <T> T call(Callable<T> work) throws Exception {
    Text.given(work, "work");
    try (Lease lease = acquire()) {
      return work.call();
    }
  }

  /**
   * Returns a view as a {@link Lock}. Its owner is the thread that locks it, which may lock it
   * again, and must unlock it. Two views are two owners: keep the view.
   *
   * <ul>
   *   <li>It has no conditions.
   *   <li>tryLock() with a time is false also if no answer came in that time.
   *   <li>After a loss, lock() by its owner throws {@link LockLostException}. unlock() throws
   *       {@link IllegalMonitorStateException} with it as the cause.
   *   <li>Other failures are a {@link RedlatchException}.
   * </ul>
   */
  public Lock asLock() {
    return new LockView(this, true, new ThreadLocal<>());
  }
}

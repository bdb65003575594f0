// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.locks.Lock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A lock by its name, with the options to take it with. Each acquisition is a lease of its own,
 * which any thread may close. Any number of threads may use it; it costs nothing to make another.
 */
public final class NamedLock {
  private final Object client; // not collected while this can be used
  private final Session session;
  private final Session.Starter starter;
  private final byte[] name;
  private final LockOptions options;
  private final @Nullable Supplier<byte[]> owner;

  NamedLock(
      Object client,
      Session session,
      Session.Starter starter,
      byte[] name,
      LockOptions options,
      @Nullable Supplier<byte[]> owner) {
    this.client = client;
    this.session = session;
    this.starter = starter;
    this.name = name;
    this.options = options;
    this.owner = owner;
  }

  /** The same lock, to be taken with other options. */
  public NamedLock with(LockOptions options) {
    return new NamedLock(client, session, starter, name, options, owner);
  }

  /** The name, as UTF-8 says it. */
  public String name() {
    return Text.of(name);
  }

  /**
   * Acquires the lock, waiting in line as long as it takes, and riding out outages of the server.
   *
   * @throws InterruptedException if the thread is interrupted; nothing is left behind then.
   * @throws RedlatchException with the status of what failed.
   */
  public Lease acquire() throws InterruptedException {
    return session.acquire(this, -1);
  }

  /**
   * Acquires the lock, waiting for at most `wait`; with none, or less, as tryAcquire() does.
   *
   * @throws NotAcquiredException if somebody else had it all the time.
   * @throws InterruptedException if the thread is interrupted; nothing is left behind then.
   * @throws RedlatchException with the status of what failed: {@link Status#E_UNAVAILABLE} if the
   *     server was away.
   */
  public Lease acquire(Duration wait) throws InterruptedException {
    return session.acquire(this, Text.waitMs(wait));
  }

  /**
   * Acquires the lock if it is free, and nobody waits for it.
   *
   * @throws RedlatchException with the status of what failed.
   */
  public Optional<Lease> tryAcquire() {
    try {
      return Optional.of(session.acquireUninterruptibly(this, Session.NO_WAIT));
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
   * runs in the common pool.
   */
  public CompletableFuture<Lease> acquireAsync() {
    return session.acquireAsync(this, -1, ForkJoinPool.commonPool());
  }

  /** As acquireAsync(), for at most `wait`: the future then fails with NotAcquiredException. */
  public CompletableFuture<Lease> acquireAsync(Duration wait) {
    return session.acquireAsync(this, Text.waitMs(wait), ForkJoinPool.commonPool());
  }

  /** As acquireAsync(wait); what depends on it runs in `executor`. */
  public CompletableFuture<Lease> acquireAsync(Duration wait, Executor executor) {
    return session.acquireAsync(this, Text.waitMs(wait), executor);
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

  Lease acquireUninterruptibly() {
    return session.acquireUninterruptibly(this, -1);
  }

  LockOptions options() {
    return options;
  }

  Session.Starter starter() {
    return starter;
  }

  byte[] bytes() {
    return name;
  }

  byte @Nullable [] owner() {
    return owner == null ? null : owner.get();
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static java.nio.charset.StandardCharsets.US_ASCII;

import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.RlcConstants;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;

/**
 * A semaphore by its name, with the limit of its permits. Any thread may use it, and it is cheap to
 * make.
 *
 * <pre>{@code
 * NamedSemaphore pool = client.semaphore("transcoders", 3);
 * try (Lease lease = pool.acquire()) {
 *   transcode(lease.fence());
 * }
 * }</pre>
 *
 * <p>Its methods have the names of {@link java.util.concurrent.Semaphore}, with these differences:
 *
 * <ul>
 *   <li>Each acquisition is a lease of its own, which is renewed, lost and closed without the
 *       others. There is no release(n): close the lease, and all its permits come back.
 *   <li>It is always fair: waiters are served in their order, and a small request never overtakes a
 *       big one. A try does not overtake the waiters either.
 *   <li>Permits of a process that has crashed come back when their leases end.
 *   <li>The limit counts for the acquisitions of this object. An operator can set a cap, and then
 *       the smaller one counts.
 * </ul>
 *
 * <p>A semaphore is not reentrant: a thread that acquires again takes other permits, and may wait
 * for itself.
 *
 * <p>The number of permits is 1 to the limit, and the limit 1 or more. With a wrong number,
 * and with the options owner, reentrant and format, an acquire fails with {@link Status#E_INVALID}.
 */
public final class NamedSemaphore {
  private static final byte[] PERMITS = "permits".getBytes(US_ASCII);
  private static final byte[] LIMIT = "limit".getBytes(US_ASCII);

  private final Redlatch client;
  private final NamedLock lock;
  private final byte[] name;
  private final int limit;
  private final LockOptions options;

  NamedSemaphore(Redlatch client, NamedLock lock, byte[] name, int limit, LockOptions options) {
    if (limit < 1 || limit > RlcConstants.RL_MAX_PERMITS) {
      String allowed = "option 'limit' must be 1 to " + RlcConstants.RL_MAX_PERMITS;
      String why = allowed + " (got '" + limit + "')";
      throw RedlatchException.of(Status.E_INVALID, "acquire", lock.name(), why);
    }
    this.client = client;
    this.lock = lock;
    this.name = name;
    this.limit = limit;
    this.options = options;
  }

  /** Returns the same semaphore with other options. */
  public NamedSemaphore with(LockOptions options) {
    return new NamedSemaphore(client, lock.with(options), name, limit, options);
  }

  /** The name of the semaphore, decoded as UTF-8. */
  public String name() {
    return lock.name();
  }

  /** The limit of this object, without the cap. */
  public int limit() {
    return limit;
  }

  private static byte[] text(int number) {
    return Integer.toString(number).getBytes(US_ASCII);
  }

  private NamedLock.Kind kind(int permits) {
    return made -> {
      Rlc.acquire_options_set(made, PERMITS, text(permits), null); // the acquire has the mistake
      Rlc.acquire_options_set(made, LIMIT, text(limit), null);
    };
  }

  private NamedLock of(int permits) {
    return lock.of(kind(permits));
  }

  /** The same as acquire(1). */
  public Lease acquire() throws InterruptedException {
    return acquire(1);
  }

  /** The same as acquire(1, wait). */
  public Lease acquire(Duration wait) throws InterruptedException {
    return acquire(1, wait);
  }

  /**
   * Acquires so many permits. It waits in the queue without a limit, also during an outage of the
   * server.
   *
   * @throws InterruptedException if the thread is interrupted; nothing is left behind then.
   * @throws RedlatchException with the status of the failure.
   */
  public Lease acquire(int permits) throws InterruptedException {
    return of(permits).acquire();
  }

  /**
   * Acquires so many permits. It waits in the queue for at most `wait`; with zero it tries once.
   *
   * @throws NotAcquiredException if the wait timed out, or one try found too few free permits, or
   *     a waiter.
   * @throws InterruptedException if the thread is interrupted; nothing is left behind then.
   * @throws RedlatchException with the status of the failure: {@link Status#E_UNAVAILABLE} if the
   *     server could not be reached in time.
   */
  public Lease acquire(int permits, Duration wait) throws InterruptedException {
    return of(permits).acquire(wait);
  }

  /** The same as tryAcquire(1). */
  public Optional<Lease> tryAcquire() {
    return tryAcquire(1);
  }

  /**
   * Acquires so many permits with one try; empty if too few are free, or another caller waits.
   *
   * @throws RedlatchException with the status of the failure.
   */
  public Optional<Lease> tryAcquire(int permits) {
    return of(permits).tryAcquire();
  }

  /** The same as acquire(wait), but empty if the wait timed out. */
  public Optional<Lease> tryAcquire(Duration wait) throws InterruptedException {
    return tryAcquire(1, wait);
  }

  /** The same as acquire(permits, wait), but empty if the wait timed out. */
  public Optional<Lease> tryAcquire(int permits, Duration wait) throws InterruptedException {
    return of(permits).tryAcquire(wait);
  }

  /** The same as tryAcquire(1, time, unit). */
  public Optional<Lease> tryAcquire(long time, TimeUnit unit) throws InterruptedException {
    return tryAcquire(1, time, unit);
  }

  /** The same as tryAcquire(permits, wait); with a time below 0 it tries once. */
  public Optional<Lease> tryAcquire(int permits, long time, TimeUnit unit)
      throws InterruptedException {
    return tryAcquire(permits, Text.wait(time, unit));
  }

  /** The same as acquireAsync(1). */
  public CompletableFuture<Lease> acquireAsync() {
    return acquireAsync(1);
  }

  /**
   * Acquires so many permits without a thread that waits. Cancel the future to leave the queue.
   * Otherwise as {@link NamedLock#acquireAsync()}.
   */
  public CompletableFuture<Lease> acquireAsync(int permits) {
    return of(permits).acquireAsync();
  }

  /** The same as acquireAsync(1, wait). */
  public CompletableFuture<Lease> acquireAsync(Duration wait) {
    return acquireAsync(1, wait);
  }

  /**
   * The same as acquireAsync(permits), for at most `wait`; the future then fails with
   * NotAcquiredException.
   */
  public CompletableFuture<Lease> acquireAsync(int permits, Duration wait) {
    return of(permits).acquireAsync(wait);
  }

  /** The same as acquireAsync(permits, wait); dependent stages run in `executor`. */
  public CompletableFuture<Lease> acquireAsync(int permits, Duration wait, Executor executor) {
    return of(permits).acquireAsync(wait, executor);
  }

  /** Holds one permit while `work` runs. Otherwise as {@link NamedLock#call}. */
  public <T> T call(Callable<T> work) throws Exception {
    return of(1).call(work);
  }

  /**
   * Takes over a lease that was detached, with its permits. The number of permits must be that of
   * the lease. Otherwise as {@link Redlatch#attach(byte[], String, long, LockOptions)},
   * with the options of this object.
   */
  public Lease attach(int permits, String token, long fence) {
    return client.attach(name, token, fence, options, kind(permits));
  }

  /** The same as attach(permits, token, 0). */
  public Lease attach(int permits, String token) {
    return attach(permits, token, 0);
  }

  /** Asks the server for the numbers of the semaphore. Changes nothing. */
  public SemaphoreStats stats() {
    return client.stats(name, limit);
  }

  /**
   * Asks the server how many permits are free for this object: the smaller one of its limit and the
   * cap, less the used ones, and never below 0. Another caller may get them meanwhile.
   */
  public int availablePermits() {
    SemaphoreStats stats = stats();
    return (int) Math.max(0, stats.limit() - stats.used());
  }

  @Override
  public String toString() {
    return "NamedSemaphore[" + name() + ", limit " + limit + "]";
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_info;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_lease;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_request;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * An operation of the library in progress. It belongs to one thread at a time: to the one that has
 * started it, or to the one that claims it.
 */
final class Request implements AutoCloseable {
  /**
   * Most calls are answered sooner, and a thread that drives its own request is two to four times
   * as fast as one that is woken through the queue.
   */
  private static final long DRIVE_MS = 2;

  /** Others go through the queue at once, so that a silent server is not polled by all. */
  private static final Semaphore DRIVING = new Semaphore(4);

  private final String op;
  private final Supplier<String> name;
  private final SWIGTYPE_p_rl_request handle;
  private final AtomicBoolean isClaimed = new AtomicBoolean();
  private long watchTag;

  private Request(String op, Supplier<String> name, SWIGTYPE_p_rl_request handle) {
    this.op = op;
    this.name = name;
    this.handle = handle;
  }

  static Request of(String op, String name, @Nullable SWIGTYPE_p_rl_request handle) {
    return of(op, () -> name, handle);
  }

  /** `name` is asked only for a message. */
  static Request of(String op, Supplier<String> name, @Nullable SWIGTYPE_p_rl_request handle) {
    if (handle == null) {
      throw RedlatchException.of(Status.E_NO_MEMORY, op, name.get(), "");
    }
    return new Request(op, name, handle);
  }

  /** After this time a wait is long. Tests change it. */
  static volatile long longWaitMs = 10_000;

  /** As await(null). */
  Status await() throws InterruptedException {
    return await(null);
  }

  /**
   * Waits for the end, and runs `notice` in this thread if that takes long. An interrupt cancels
   * it.
   *
   * @throws InterruptedException and it was cancelled. One that has finished before stands, and the
   *     thread stays interrupted.
   * @throws RedlatchException as check().
   */
  Status await(@Nullable Runnable notice) throws InterruptedException {
    CountDownLatch done = done();
    try {
      if (notice != null && isLong(done)) {
        notice.run();
      }
      done.await();
    } catch (InterruptedException interrupted) {
      takeBack();
      if (cancel() == Status.CANCELLED) {
        throw interrupted;
      }
      Thread.currentThread().interrupt();
    }
    return check();
  }

  /** As awaitUninterruptibly(null). */
  Status awaitUninterruptibly() {
    return awaitUninterruptibly(null);
  }

  /**
   * Waits for the end, also through interrupts; the thread then stays interrupted. Runs `notice` in
   * this thread if that takes long.
   *
   * @throws RedlatchException as check().
   */
  Status awaitUninterruptibly(@Nullable Runnable notice) {
    CountDownLatch done = done();
    boolean isInterrupted = false;
    boolean isNoticed = notice == null;
    while (true) {
      try {
        if (!isNoticed && isLong(done)) {
          isNoticed = true;
          notice.run();
        }
        done.await();
        break;
      } catch (InterruptedException interrupted) {
        isInterrupted = true;
      }
    }
    if (isInterrupted) {
      Thread.currentThread().interrupt();
    }
    return check();
  }

  /** False at the end; true after a long wait. The library does not know virtual threads. */
  private static boolean isLong(CountDownLatch done) throws InterruptedException {
    return !Threads.isVirtual() && !done.await(longWaitMs, TimeUnit.MILLISECONDS);
  }

  /** Opens at the end. */
  private CountDownLatch done() {
    boolean isDone = drive() != Status.PENDING;
    CountDownLatch done = new CountDownLatch(isDone ? 0 : 1);
    if (!isDone) {
      watch(done::countDown);
    }
    return done;
  }

  /** Has the pump call `wake` at the end, in its thread. */
  void watch(Runnable wake) {
    watchTag = Pump.watch((queue, tag) -> Rlc.request_watch(handle, queue, tag), wake);
  }

  /** Takes it out of the pump, if it is there. */
  void takeBack() {
    Pump.forget(watchTag);
  }

  /** True for the first: the request is its own, and others leave it alone. */
  boolean claim() {
    return !isClaimed.getAndSet(true);
  }

  /** Lets the library see which thread waits: its log says so if that thread has the lock. */
  void lookAtWaiter() {
    Rlc.request_wait(handle, 0);
  }

  private Status drive() {
    // A call into the library pins a virtual thread to its carrier.
    if (Threads.isVirtual() || !DRIVING.tryAcquire()) {
      return status();
    }
    try {
      Status status = Status.of(Rlc.request_wait(handle, DRIVE_MS));
      return status == Status.INTERRUPTED ? Status.PENDING : status;
    } finally {
      DRIVING.release();
    }
  }

  private Status status() {
    return Status.of(Rlc.request_status(handle));
  }

  /** CANCELLED, or the status that it has finished with before. */
  private Status cancel() {
    return Status.of(Rlc.request_cancel(handle));
  }

  /**
   * How it has ended: OK, STILL_HELD or SKIPPED.
   *
   * @throws RedlatchException with any other status.
   */
  private Status check() {
    Status status = status();
    if (status != Status.OK && status != Status.STILL_HELD && status != Status.SKIPPED) {
      throw RedlatchException.of(status, op, name.get(), Text.of(Rlc.request_message(handle)));
    }
    return status;
  }

  /**
   * The lease of an acquire that has ended; once.
   *
   * @throws RedlatchException as check().
   */
  SWIGTYPE_p_rl_lease takeLease() {
    check();
    SWIGTYPE_p_rl_lease lease = Rlc.request_take_lease(handle);
    if (lease == null) {
      throw RedlatchException.of(Status.E_NO_MEMORY, op, name.get(), "");
    }
    return lease;
  }

  /**
   * The value of a flight that has ended; null if the request has a lease instead.
   *
   * @throws SingleFlightException if the caller that computed it has failed.
   */
  byte @Nullable [] flightValue() {
    if (Rlc.flight_value(handle, new byte[0]) < 0) {
      return null;
    }
    byte[] value = Text.read(buffer -> Rlc.flight_value(handle, buffer));
    if (Rlc.flight_has_failed(handle) == 0) {
      return value;
    }
    byte[] type = Text.read(buffer -> Rlc.flight_failure_type(handle, buffer));
    throw new SingleFlightException(
        op + " " + Text.quoted(name.get()) + ": the caller that computed the value has failed: ",
        Text.of(type),
        Text.of(value));
  }

  /** The number of holders that have heard a recall, which has ended. */
  long recallHeard() {
    return Rlc.recall_heard(handle);
  }

  /**
   * That of an inspection that has ended; once.
   *
   * @throws RedlatchException as check().
   */
  SWIGTYPE_p_rl_info takeInfo() {
    check();
    SWIGTYPE_p_rl_info info = Rlc.request_take_info(handle);
    if (info == null) {
      throw RedlatchException.of(Status.E_NO_MEMORY, op, name.get(), "");
    }
    return info;
  }

  /** Cancels an unfinished request, and releases a result that was not taken. */
  @Override
  public void close() {
    Rlc.request_free(handle);
  }
}

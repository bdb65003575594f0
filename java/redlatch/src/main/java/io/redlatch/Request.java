// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_lease;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_request;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Something that was started in the library and will finish. It belongs to one thread at a time:
 * to the one that has started it, or to whoever takes it out of the pump.
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
  private final String name;
  private final SWIGTYPE_p_rl_request handle;
  private long watchTag;

  private Request(String op, String name, SWIGTYPE_p_rl_request handle) {
    this.op = op;
    this.name = name;
    this.handle = handle;
  }

  static Request of(String op, String name, @Nullable SWIGTYPE_p_rl_request handle) {
    if (handle == null) {
      throw RedlatchException.of(Status.E_NO_MEMORY, op, name, "");
    }
    return new Request(op, name, handle);
  }

  /**
   * Waits for the end. An interrupt cancels it.
   *
   * @throws InterruptedException and it was cancelled. One that has finished before stands, and the
   *     thread stays interrupted.
   */
  Status await() throws InterruptedException {
    Status status = drive();
    if (status != Status.PENDING) {
      return status;
    }
    CountDownLatch done = new CountDownLatch(1);
    watch(done::countDown);
    try {
      done.await();
    } catch (InterruptedException interrupted) {
      takeBack();
      if (cancel() == Status.CANCELLED) {
        throw interrupted;
      }
      Thread.currentThread().interrupt();
    }
    return status();
  }

  /** Waits for the end of what is short, whoever interrupts; the thread then stays interrupted. */
  Status awaitUninterruptibly() {
    Status status = drive();
    if (status != Status.PENDING) {
      return status;
    }
    CountDownLatch done = new CountDownLatch(1);
    watch(done::countDown);
    boolean isInterrupted = false;
    while (true) {
      try {
        done.await();
        break;
      } catch (InterruptedException interrupted) {
        isInterrupted = true;
      }
    }
    if (isInterrupted) {
      Thread.currentThread().interrupt();
    }
    return status();
  }

  /** Has the pump hand over the status, in its thread; and with it this request. */
  void whenDone(Consumer<Status> finished) {
    watch(() -> finished.accept(status()));
  }

  /** Takes it out of the pump. False if it was handed over before, and is somebody else's. */
  boolean takeBack() {
    return Pump.forget(watchTag);
  }

  private void watch(Runnable wake) {
    watchTag = Pump.watch((queue, tag) -> Rlc.request_watch(handle, queue, tag), wake);
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

  /** The lease of an acquire that was granted; once. */
  SWIGTYPE_p_rl_lease takeLease() {
    SWIGTYPE_p_rl_lease lease = Rlc.request_take_lease(handle);
    if (lease == null) {
      throw RedlatchException.of(Status.E_NO_MEMORY, op, name, "");
    }
    return lease;
  }

  RedlatchException failure(Status status) {
    return RedlatchException.of(status, op, name, Text.of(Rlc.request_message(handle)));
  }

  /** Cancels what has not finished, and gives back what was not taken. */
  @Override
  public void close() {
    Rlc.request_free(handle);
  }
}

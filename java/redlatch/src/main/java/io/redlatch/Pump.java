// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.NativeLibrary;
import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_queue;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Tells those who wait what has happened: one daemon thread and one queue of the library for all
 * clients of the process, made when something first waits.
 */
final class Pump {
  /** What is to be watched registers itself here. */
  interface Watched {
    int watch(SWIGTYPE_p_rl_queue queue, long tag);
  }

  private static final Map<Long, Runnable> WAKES = new ConcurrentHashMap<>();
  private static final AtomicLong LAST_TAG = new AtomicLong();

  /** Made once, by the class loader. */
  private static final class Queue {
    static final SWIGTYPE_p_rl_queue HANDLE = start();

    private static SWIGTYPE_p_rl_queue start() {
      NativeLibrary.load();
      SWIGTYPE_p_rl_queue queue = Rlc.queue_new(null);
      if (queue == null) {
        throw RedlatchException.of(Status.E_NO_MEMORY, "wait", "", "no queue");
      }
      Thread thread = new Thread(() -> run(queue), "redlatch-pump");
      thread.setDaemon(true);
      thread.start();
      return queue;
    }
  }

  private Pump() {}

  /**
   * Calls `wake`, once and in the pump's thread, where it must not wait.
   *
   * @return the tag, for forget().
   */
  static long watch(Watched watched, Runnable wake) {
    long tag = LAST_TAG.incrementAndGet();
    WAKES.put(tag, wake);
    Status status = Status.of(watched.watch(Queue.HANDLE, tag));
    if (status != Status.OK) {
      WAKES.remove(tag);
      throw RedlatchException.of(status, "wait", "", "");
    }
    return tag;
  }

  /** From now on the wake of `tag` is not called, unless it is being called. */
  static void forget(long tag) {
    WAKES.remove(tag);
  }

  private static void run(SWIGTYPE_p_rl_queue queue) {
    while (true) {
      Runnable wake = WAKES.remove(Rlc.queue_next(queue, -1));
      if (wake == null) {
        continue;
      }
      try {
        wake.run();
      } catch (RuntimeException | Error failure) {
        // That of one must not be that of all.
        Thread current = Thread.currentThread();
        current.getUncaughtExceptionHandler().uncaughtException(current, failure);
      }
    }
  }
}

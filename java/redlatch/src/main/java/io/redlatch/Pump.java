// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_queue;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Notifies waiters: one daemon thread and one queue of the library for all clients of the process,
 * made when something first waits.
 */
final class Pump {
  /** Registers an event at the queue. */
  interface Watched {
    int watch(SWIGTYPE_p_rl_queue queue, long tag);
  }

  private static final Map<Long, Runnable> WAKES = new ConcurrentHashMap<>();
  private static final AtomicLong LAST_TAG = new AtomicLong();
  private static @Nullable SWIGTYPE_p_rl_queue queue;

  private Pump() {}

  /**
   * Calls `wake`, once and in the pump's thread, where it must not wait.
   *
   * @return the tag, for forget().
   */
  static long watch(Watched watched, Runnable wake) {
    SWIGTYPE_p_rl_queue started = queue();
    long tag = LAST_TAG.incrementAndGet();
    WAKES.put(tag, wake);
    Status status = Status.of(watched.watch(started, tag));
    if (status != Status.OK) {
      WAKES.remove(tag);
      throw RedlatchException.of(status, "wait", "", "");
    }
    return tag;
  }

  /**
   * From now on the wake of `tag` is not called.
   *
   * @return false if it is too late for that.
   */
  static boolean forget(long tag) {
    return WAKES.remove(tag) != null;
  }

  /** The next one tries again if there is no descriptor for it now. */
  private static synchronized SWIGTYPE_p_rl_queue queue() {
    SWIGTYPE_p_rl_queue started = queue;
    if (started == null) {
      SWIGTYPE_p_rl_queue made = Errors.check("wait", "", Rlc::queue_new);
      Threads.daemon("redlatch-pump", () -> run(made)).start();
      queue = started = made;
    }
    return started;
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
        Threads.report(failure);
      }
    }
  }
}

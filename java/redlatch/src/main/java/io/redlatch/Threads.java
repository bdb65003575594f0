// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Threads of our own, and what newer versions of Java know about others. */
final class Threads {
  private static final @Nullable MethodHandle IS_VIRTUAL = findIsVirtual();

  /** For calls that have no request behind them. */
  private static final Executor BLOCKING =
      makePool("redlatch-blocking", 4, 4, new LinkedBlockingQueue<>());

  /** As many as there is to tell: a small machine's common pool is one thread. */
  private static final Executor TELLING =
      makePool("redlatch-tell", 0, Integer.MAX_VALUE, new SynchronousQueue<>());

  private Threads() {}

  /** Made by whichever thread comes first, it keeps nothing of it. */
  static Thread daemon(String name, Runnable work) {
    Thread thread = new Thread(null, work, name, 0, false);
    thread.setContextClassLoader(ClassLoader.getSystemClassLoader());
    thread.setDaemon(true);
    return thread;
  }

  /** Reports a failure of foreign code: it must not end a shared thread, and must not get lost. */
  static void report(Throwable failure) {
    Thread current = Thread.currentThread();
    try {
      current.getUncaughtExceptionHandler().uncaughtException(current, failure);
    } catch (RuntimeException | Error ignored) {
      // As for a thread that has ended.
    }
  }

  static boolean isVirtual() {
    if (IS_VIRTUAL == null) {
      return false;
    }
    try {
      return (boolean) IS_VIRTUAL.invokeExact(Thread.currentThread());
    } catch (Throwable failure) {
      throw new AssertionError(failure);
    }
  }

  /**
   * A call into the library that waits for the server there. It would pin a virtual thread to its
   * carrier: that has a thread of ours do it.
   */
  static <T> T blocking(Supplier<T> call) {
    if (!isVirtual()) {
      return call.get();
    }
    try {
      return CompletableFuture.supplyAsync(call, BLOCKING).join();
    } catch (CompletionException failure) {
      if (failure.getCause() instanceof RedlatchException cause) {
        cause.addSuppressed(new Throwable("called from here"));
        throw cause;
      }
      throw failure;
    }
  }

  /**
   * Runs foreign code, which may block, in a thread of its own: the pump may not, and others wait
   * for it.
   */
  static void tell(Runnable work) {
    try {
      TELLING.execute(work);
    } catch (OutOfMemoryError noThread) {
      // Other waiters are notified late then, which is better than never.
      work.run();
    }
  }

  private static Executor makePool(
      String name, int least, int most, BlockingQueue<Runnable> queue) {
    ThreadPoolExecutor threads =
        new ThreadPoolExecutor(
            least, most, 1, TimeUnit.SECONDS, queue, work -> daemon(name, work));
    threads.allowCoreThreadTimeOut(true);
    return threads;
  }

  private static @Nullable MethodHandle findIsVirtual() {
    try {
      MethodType type = MethodType.methodType(boolean.class);
      return MethodHandles.publicLookup().findVirtual(Thread.class, "isVirtual", type);
    } catch (NoSuchMethodException | IllegalAccessException older) {
      return null;
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Threads of our own, and what newer versions of Java know about others. */
final class Threads {
  private static final @Nullable MethodHandle IS_VIRTUAL = findIsVirtual();

  /** For calls that have no request behind them. */
  private static final Executor BLOCKING = makeBlocking();

  private Threads() {}

  /** Made by whichever thread comes first, it keeps nothing of it. */
  static Thread daemon(String name, Runnable work) {
    Thread thread = new Thread(null, work, name, 0, false);
    thread.setContextClassLoader(null);
    thread.setDaemon(true);
    return thread;
  }

  /** What fails for one must not end a thread of all, and must not be kept from all. */
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

  private static Executor makeBlocking() {
    ThreadPoolExecutor threads =
        new ThreadPoolExecutor(
            4,
            4,
            1,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            work -> daemon("redlatch-blocking", work));
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

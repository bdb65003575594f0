// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;

/** Waiting for what should come at once, on a machine that is busy; also without JUnit. */
public final class Wait {
  static final long PATIENCE_S = 30;

  private Wait() {}

  public static void until(BooleanSupplier fact) {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
    while (!fact.getAsBoolean()) {
      if (System.nanoTime() > end) {
        throw new AssertionError("it did not come to that");
      }
      try {
        Thread.sleep(1);
      } catch (InterruptedException interrupted) {
        throw new AssertionError(interrupted);
      }
    }
  }

  public static <T> T get(CompletableFuture<T> future) throws Exception {
    return future.get(PATIENCE_S, TimeUnit.SECONDS);
  }

  /** What `work` returns in a thread of its own, which is an owner of its own. */
  public static <T> T inThread(Callable<T> work) throws Exception {
    return new Worker<>(work).end();
  }

  /** What has no result, and may fail. */
  public interface Work {
    void run() throws Exception;
  }

  /** A thread that does one thing. */
  public static final class Worker<T> {
    public final Thread thread;
    private final FutureTask<T> task;

    public Worker(Callable<T> work) {
      task = new FutureTask<>(work);
      thread = new Thread(task, "worker");
      thread.setDaemon(true);
      thread.start();
    }

    public static Worker<?> doing(Work work) {
      return new Worker<>(
          () -> {
            work.run();
            return null;
          });
    }

    /** True while it waits for another thread, with a limit or without. */
    public boolean isParked() {
      Thread.State state = thread.getState();
      return state == Thread.State.WAITING || state == Thread.State.TIMED_WAITING;
    }

    public boolean isWaiting() {
      return !task.isDone();
    }

    public T end() throws Exception {
      try {
        return task.get(PATIENCE_S, TimeUnit.SECONDS);
      } catch (ExecutionException failure) {
        if (failure.getCause() instanceof Exception cause) {
          throw cause;
        }
        throw new AssertionError(failure.getCause());
      } catch (TimeoutException hangs) {
        AssertionError error = new AssertionError("it does not end");
        error.setStackTrace(thread.getStackTrace());
        throw error;
      }
    }
  }
}

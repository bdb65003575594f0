// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** One call of a callback of an election. Its failure is logged, and so is a long run. */
final class ElectionCall<T> implements Runnable {
  /** After this time a run is long. Tests change it. */
  static volatile long longRunMs = 5_000;

  private final String what;
  private final String election;
  private final ElectionAction<T> action;
  private final T argument;
  private final CountDownLatch done = new CountDownLatch(1);
  private @Nullable Thread thread; // while it runs
  private boolean hasBegun;
  private boolean isCancelled;

  ElectionCall(String what, String election, ElectionAction<T> action, T argument) {
    this.what = what;
    this.election = election;
    this.action = action;
    this.argument = argument;
  }

  @Override
  public void run() {
    if (begin()) {
      try {
        noticeLater();
        action.accept(argument);
      } catch (Throwable failure) {
        fail(failure);
      } finally {
        end();
      }
    }
  }

  private synchronized boolean begin() {
    if (isCancelled) {
      return false;
    }
    hasBegun = true;
    thread = Thread.currentThread();
    return true;
  }

  private void noticeLater() {
    CompletableFuture.delayedExecutor(longRunMs, TimeUnit.MILLISECONDS, Threads::tell)
        .execute(this::noticeLongRun);
  }

  /** Not under the mutex: a slow logger must not delay cancel(), and with it onRevoked. */
  private void noticeLongRun() {
    Throwable where = new Throwable("the thread is here");
    synchronized (this) {
      if (thread == null) {
        return;
      }
      where.setStackTrace(thread.getStackTrace());
    }
    Warnings.callbackBlocks(what, election, where);
  }

  private void fail(Throwable failure) {
    if (!(failure instanceof InterruptedException) || !isCancelled()) {
      Warnings.callbackFailed(what, election, failure);
    }
  }

  private synchronized boolean isCancelled() {
    return isCancelled;
  }

  private void end() {
    synchronized (this) {
      thread = null;
      if (isCancelled) {
        Thread.interrupted(); // The next call of this thread is not interrupted.
      }
    }
    done.countDown();
  }

  /** Interrupts it if it runs. Returns true if it has not begun, and then it never does. */
  synchronized boolean cancel() {
    isCancelled = true;
    if (thread != null) {
      thread.interrupt();
    }
    return !hasBegun;
  }

  /** Waits for the end of one that has begun, for at most so long; an interrupt ends that. */
  void await(long ms) {
    try {
      done.await(ms, TimeUnit.MILLISECONDS);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /** Waits for the end of one that has begun, also through interrupts. */
  void await() {
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
  }
}

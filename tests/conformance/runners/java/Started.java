// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import io.redlatch.Lease;
import io.redlatch.RedlatchException;
import io.redlatch.Status;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;

/**
 * What goes on by itself: an acquisition, a campaign, or an upgrade, which has nothing to give.
 *
 * @param <T> a lease or a term
 */
final class Started<T> {
  interface Work<T> {
    T run() throws InterruptedException;
  }

  private final CompletableFuture<T> result;
  private final Runnable cancel;
  private final Function<T, Answer> granted;
  private boolean isShown;

  private Started(CompletableFuture<T> result, Runnable cancel, Function<T, Answer> granted) {
    this.result = result;
    this.cancel = cancel;
    this.granted = granted;
  }

  /** Whoever is granted a lease hears of it once. */
  static Started<Lease> acquisition(
      CompletableFuture<Lease> future, Function<Lease, Answer> granted) {
    return new Started<>(future, () -> future.cancel(false), granted);
  }

  /** Java has no upgrade or campaign without a thread: to interrupt it is to cancel. */
  static <T> Started<T> inThread(Work<T> work, Function<T, Answer> granted) {
    CompletableFuture<T> result = new CompletableFuture<>();
    Thread thread =
        new Thread(
            () -> {
              try {
                result.complete(work.run());
              } catch (RedlatchException failure) {
                result.completeExceptionally(failure);
              } catch (InterruptedException interrupted) {
                result.cancel(false);
              }
            });
    thread.start();
    return new Started<>(result, thread::interrupt, granted);
  }

  Answer poll(Values values) throws InterruptedException {
    try {
      if (values.isEndless()) {
        return finished(result.get());
      }
      return finished(result.get(values.number("wait_ms"), TimeUnit.MILLISECONDS));
    } catch (TimeoutException pending) {
      return new Answer(Status.PENDING);
    } catch (CancellationException cancelled) {
      return new Answer(Status.CANCELLED);
    } catch (ExecutionException failure) {
      return failed(failure.getCause());
    }
  }

  Answer cancel() throws InterruptedException {
    if (Defects.has("ignore_cancel") && !result.isDone()) {
      return new Answer(Status.CANCELLED);
    }
    cancel.run();
    Values endless = new Values();
    endless.put("wait_ms", "-1");
    return poll(endless);
  }

  void join() {
    result.exceptionally(failure -> null).join();
  }

  private synchronized Answer finished(T given) {
    if (given == null || isShown) {
      return Answer.ok();
    }
    isShown = true;
    return granted.apply(given);
  }

  private static Answer failed(Throwable failure) {
    if (failure instanceof CompletionException wrapped) {
      return failed(wrapped.getCause());
    }
    if (failure instanceof CancellationException) {
      return new Answer(Status.CANCELLED);
    }
    return Answer.of((RedlatchException) failure);
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.Rlc;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * The end and the first recall of a lease, as futures, which complete in a thread of redlatch. Each
 * caller gets a copy, and cancels only that. The library has one watch of each: another one would
 * replace it. A watch keeps the lease from being collected until it ends, so that the event is
 * reported.
 */
final class LeaseEvents {
  private final Lease lease;
  private @Nullable Ending ending;
  private @Nullable CompletableFuture<String> recalled;

  private record Ending(CompletableFuture<LockLostException> lost, CompletableFuture<Void> ended) {
    void complete(@Nullable RedlatchException reason) {
      ended.complete(null);
      if (reason instanceof LockLostException loss) {
        lost.complete(loss);
      }
    }
  }

  LeaseEvents(Lease lease) {
    this.lease = lease;
  }

  /** Runs `action` in `executor`. A future would keep to itself what fails. */
  static void execute(Executor executor, Runnable action) {
    try {
      executor.execute(action);
    } catch (RuntimeException | Error failure) {
      Threads.report(failure);
    }
  }

  /** Completes with the reason of a loss, and never if the lease is closed or detached. */
  CompletableFuture<LockLostException> lost() {
    return ending().lost.copy();
  }

  /** Completes when the lease is not held any more, for whatever reason. */
  CompletableFuture<Void> ended() {
    return ending().ended.copy();
  }

  private synchronized Ending ending() {
    Ending started = ending;
    if (started == null) {
      ending = started = watchEnd();
    }
    return started;
  }

  private Ending watchEnd() {
    Ending started = new Ending(new CompletableFuture<>(), new CompletableFuture<>());
    Pump.watch(
        (queue, tag) -> lease.ask(handle -> Rlc.lease_watch(handle, queue, tag)),
        () -> {
          RedlatchException reason = lease.ask(Lease::whyNotHeld);
          Threads.tell(() -> started.complete(reason));
        });
    return started;
  }

  /**
   * Completes with the reason of the first recall, and never if the lease ends before.
   *
   * @throws RedlatchException with {@link Status#E_UNSUPPORTED} for a lease of a Redlock.
   */
  synchronized CompletableFuture<String> recalled() {
    CompletableFuture<String> started = recalled;
    if (started == null) {
      recalled = started = watchRecall();
    }
    return started.copy();
  }

  private CompletableFuture<String> watchRecall() {
    CompletableFuture<String> started = new CompletableFuture<>();
    CompletableFuture<Void> end = ended();
    long watched;
    try {
      watched =
          Pump.watch(
              (queue, tag) -> lease.ask(handle -> Rlc.lease_watch_recall(handle, queue, tag)),
              () -> {
                String reason = lease.recallReason();
                Threads.tell(() -> started.complete(reason));
              });
    } catch (RedlatchException failure) {
      throw RedlatchException.of(failure.status(), "recall", lease.name(), why(failure.status()));
    }
    // The library drops the event of a lease that has ended.
    end.thenRun(() -> Pump.forget(watched));
    return started;
  }

  private static String why(Status status) {
    return status == Status.E_UNSUPPORTED
        ? "a recall is not possible with a Redlock: use a client of one server"
        : "";
  }
}

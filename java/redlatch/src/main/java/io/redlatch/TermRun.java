// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;

/** A term of an elector, from the grant to the release, with its callbacks. */
final class TermRun {
  /** The reason of its end. */
  enum End {
    LOST,
    RESIGNED,
    /** Another party has asked this leader to resign. */
    RECALLED,
    /** onElected has thrown. */
    FAILED
  }

  /** The callbacks of an elector, and the executor of the first one. */
  record Callbacks(
      ElectionAction<Term> onElected, ElectionAction<Term> onRevoked, Executor executor) {}

  /** The time that an interrupted onElected has before onRevoked runs. Tests change it. */
  static volatile long interruptedMs = 1_000;

  private final Lease lease;
  private final Term term;
  private final Callbacks callbacks;
  private final CompletableFuture<End> end = new CompletableFuture<>();

  TermRun(Lease lease, String id, Callbacks callbacks) {
    this.lease = lease;
    this.callbacks = callbacks;
    term = new Term(lease, id, () -> end(End.RESIGNED));
  }

  Term term() {
    return term;
  }

  /** From now on the term does not lead; its lock is released after the callbacks. */
  void end(End why) {
    term.end();
    end.complete(why);
  }

  /** Returns after the callbacks and the release. A term that is over has no callbacks. */
  End run() {
    try {
      lease.ended().thenRun(() -> end(End.LOST));
      lease.recalled().thenRun(() -> end(End.RECALLED));
      if (!end.isDone()) {
        lead();
      }
      return end.join();
    } finally {
      release();
    }
  }

  private void lead() {
    ElectionCall<Term> elected = call("onElected", this::elect);
    callbacks.executor.execute(elected);
    end.join();
    if (!elected.cancel()) {
      // What it starts is stopped, if it returns soon. It may ignore the interrupt.
      elected.await(interruptedMs);
      call("onRevoked", callbacks.onRevoked).run();
      elected.await();
    }
  }

  private ElectionCall<Term> call(String what, ElectionAction<Term> action) {
    return new ElectionCall<>(what, term.name(), action, term);
  }

  private void elect(Term elected) throws Exception {
    try {
      callbacks.onElected.accept(elected);
    } catch (Throwable failure) {
      end(End.FAILED);
      throw failure;
    }
  }

  private void release() {
    term.end();
    try {
      lease.close();
    } catch (LockLostException lost) {
      // The log of the client has it, and onRevoked was called.
    } catch (RedlatchException failure) {
      Warnings.electionEnded("term", term.name(), failure);
    }
  }
}

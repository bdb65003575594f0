// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** The work of the thread of an elector: it campaigns, and then leads, until it is closed. */
final class Campaigner implements Runnable {
  private final Election election;
  private final TermRun.Callbacks callbacks;
  private final Backoff backoff = new Backoff();
  private final CountDownLatch closing = new CountDownLatch(1);
  private final CompletableFuture<Void> ended = new CompletableFuture<>();
  private @Nullable CompletableFuture<Lease> campaign;
  private @Nullable TermRun leading;

  Campaigner(Election election, TermRun.Callbacks callbacks) {
    this.election = election;
    this.callbacks = callbacks;
  }

  /** Completes after the last callback and release; with the failure that has ended it, if any. */
  CompletableFuture<Void> ended() {
    return ended;
  }

  @Override
  public void run() {
    try {
      while (!isClosed()) {
        tryOnce();
      }
      ended.complete(null);
    } catch (RedlatchException failure) {
      Warnings.electionEnded("elector", election.name(), failure);
      ended.completeExceptionally(failure);
    }
  }

  /** One campaign, its term, and the delay after it. Throws if all campaigns would fail. */
  private void tryOnce() {
    try {
      Lease lease = campaign();
      if (lease != null && lead(lease) != TermRun.End.RESIGNED) {
        pause(backoff.next());
      }
    } catch (RedlatchException failure) {
      if (isFinal(failure.status())) {
        throw failure;
      }
      retry(failure);
    } catch (RuntimeException | Error failure) {
      retry(failure);
    }
  }

  private void retry(Throwable failure) {
    long delayMs = backoff.next();
    Warnings.retried("a campaign", election.name(), delayMs, failure);
    pause(delayMs);
  }

  private void pause(long delayMs) {
    try {
      closing.await(delayMs, TimeUnit.MILLISECONDS);
    } catch (InterruptedException byACallback) {
      // The next campaign is early.
    }
  }

  /** Null if it was closed. */
  private @Nullable Lease campaign() {
    CompletableFuture<Lease> started;
    synchronized (this) {
      if (isClosed()) {
        return null;
      }
      campaign = started = election.lock().acquireAsync();
    }
    try {
      return started.join();
    } catch (CancellationException closed) {
      return null;
    } catch (CompletionException failure) {
      if (failure.getCause() instanceof RedlatchException cause) {
        throw cause;
      }
      throw failure;
    }
  }

  private TermRun.End lead(Lease lease) {
    TermRun run = new TermRun(lease, election.id(), callbacks);
    synchronized (this) {
      leading = run;
    }
    if (isClosed()) {
      run.end(TermRun.End.RESIGNED);
    }
    long begin = System.nanoTime();
    try {
      return run.run();
    } finally {
      synchronized (this) {
        leading = null;
      }
      if (System.nanoTime() - begin > TimeUnit.MILLISECONDS.toNanos(Backoff.MOST_MS)) {
        backoff.reset();
      }
    }
  }

  /** True if a call that has failed so would fail again. */
  static boolean isFinal(Status status) {
    switch (status) {
      case E_INVALID:
      case E_DENIED:
      case E_UNSUPPORTED:
      case E_CLOSED:
      case E_FORKED:
        return true;
      default:
        return false;
    }
  }

  /** The present term. */
  synchronized Optional<Term> term() {
    return Optional.ofNullable(leading).map(TermRun::term).filter(Term::isLeader);
  }

  synchronized void resign() {
    if (leading != null) {
      leading.end(TermRun.End.RESIGNED);
    }
  }

  private boolean isClosed() {
    return closing.getCount() == 0;
  }

  /** Ends the campaign, or the term. Does not wait. */
  void close() {
    closing.countDown();
    CompletableFuture<Lease> open;
    synchronized (this) {
      open = campaign;
    }
    if (open != null) {
      open.cancel(false); // A lease that comes at the same time is released.
    }
    resign();
  }
}

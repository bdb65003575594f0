// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Calls an action at each change of the leader: {@link Election#observe}. */
public final class LeaderObserver implements AutoCloseable {
  private final Election election;
  private final ElectionAction<Optional<Leader>> action;
  private final Backoff backoff = new Backoff();
  private @Nullable Request request;
  private long position = -1;
  private volatile boolean isClosed;

  LeaderObserver(Election election, ElectionAction<Optional<Leader>> action) {
    this.election = election;
    this.action = action;
  }

  synchronized void ask() {
    if (isClosed) {
      return;
    }
    Request started = election.watch(position);
    try {
      started.watch(() -> Threads.tell(() -> take(started)));
    } catch (RedlatchException failure) {
      started.close();
      throw failure;
    }
    request = started;
  }

  /** Not in the pump: the action may block. */
  private void take(Request finished) {
    if (!finished.claim()) {
      return;
    }
    try (finished) {
      InfoReader.ElectionState state = InfoReader.electionOf(finished.takeInfo());
      position = state.position();
      backoff.reset();
      call(state.leader());
    } catch (RedlatchException failure) {
      retry(failure);
      return;
    }
    askAgain();
  }

  private void call(Optional<Leader> leader) {
    if (!isClosed) {
      new ElectionCall<>("observe", election.name(), action, leader).run();
    }
  }

  private void askAgain() {
    try {
      ask();
    } catch (RedlatchException failure) {
      retry(failure);
    }
  }

  private void retry(RedlatchException failure) {
    if (isClosed || failure.status() == Status.E_CLOSED) {
      return;
    }
    if (Campaigner.isFinal(failure.status()) && failure.status() != Status.E_DENIED) {
      Warnings.electionEnded("observer", election.name(), failure);
      return;
    }
    long delayMs = backoff.next();
    Warnings.retried("reading the leader", election.name(), delayMs, failure);
    CompletableFuture.delayedExecutor(delayMs, TimeUnit.MILLISECONDS, Threads::tell)
        .execute(this::askAgain);
  }

  /** Ends it; the action that runs continues. Does not block. A second close() does nothing. */
  @Override
  public void close() {
    isClosed = true;
    Request open;
    synchronized (this) {
      open = request;
      request = null;
    }
    if (open != null && open.claim()) {
      open.takeBack();
      open.close();
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import io.redlatch.Lease;
import io.redlatch.LockLostException;
import io.redlatch.RedlatchException;
import io.redlatch.Status;
import io.redlatch.Term;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** The last term of a candidate, also after its resignation. */
final class HeldTerm implements Holding {
  private final Term term;
  private final Recalls recalls;
  private final CompletableFuture<Void> lost = new CompletableFuture<>();

  HeldTerm(Term term) {
    this.term = term;
    recalls = new Recalls(term::onRecall, OptionalLong::empty);
    term.onLost(() -> lost.complete(null));
  }

  @Override
  public Answer run(String op, Values values) throws InterruptedException {
    switch (op) {
      case "check":
        term.checkLeader();
        return Answer.ok();
      case "detach":
      case "downgrade":
        return new Answer(Status.E_INVALID); // Java has no words for it.
      case "recalled":
        return recalls.await(values);
      case "wait_lost":
        return waitLost(values);
      case "show":
        return Answer.ok()
            .add("state", state())
            .add("remaining_ms", term.remaining().toMillis())
            .add("fence", term.number())
            .add("leads", term.isLeader() ? 1 : 0);
      default:
        throw new IllegalArgumentException(op);
    }
  }

  @Override
  public Answer release() {
    if (!Defects.has("ignore_release")) {
      Logged.during(term::close);
    }
    return Answer.ok();
  }

  private Answer waitLost(Values values) throws InterruptedException {
    try {
      if (values.isEndless()) {
        lost.get();
      } else {
        lost.get(values.number("wait_ms"), TimeUnit.MILLISECONDS);
      }
    } catch (TimeoutException notYet) {
      return Answer.ok().add("state", state());
    } catch (ExecutionException failure) {
      throw new AssertionError(failure);
    }
    return Answer.ok().add("state", state());
  }

  private Lease.State state() {
    try {
      term.checkLeader();
      return Lease.State.HELD;
    } catch (LockLostException failure) {
      return Lease.State.LOST;
    } catch (RedlatchException failure) {
      if (failure.status() != Status.E_NOT_HELD) {
        throw failure;
      }
      return Lease.State.RELEASED;
    }
  }
}

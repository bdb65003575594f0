// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import io.redlatch.Election;
import io.redlatch.LeaderElector;
import io.redlatch.Status;
import io.redlatch.Term;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** A candidate that leads in the background, and what its callbacks have seen. */
final class Leading {
  private final BlockingQueue<Answer> events = new LinkedBlockingQueue<>();
  private final LeaderElector elector;

  Leading(Election election) {
    elector =
        election
            .elector()
            .onElected(term -> add("elected", term))
            .onRevoked(term -> add("revoked", term))
            .start();
  }

  private void add(String event, Term term) {
    events.add(Answer.ok().add("event", event).add("term", term.number()));
  }

  Answer event(Values values) throws InterruptedException {
    Answer event = events.poll(values.number("wait_ms"), TimeUnit.MILLISECONDS);
    return event != null ? event : new Answer(Status.TIMEOUT);
  }

  Answer stop() {
    elector.close();
    return Answer.ok();
  }
}

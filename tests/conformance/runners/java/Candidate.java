// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import io.redlatch.Election;
import io.redlatch.Leader;
import io.redlatch.LeaderObserver;
import io.redlatch.LockOptions;
import io.redlatch.Status;
import io.redlatch.Term;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** A candidate in an election, with the options of its lock, and an observer of it. */
final class Candidate {
  private static final long LOOK_MS = 20;

  private final Client client;
  private final byte[] name;
  private final LockOptions options;
  private final BlockingQueue<Optional<Leader>> seen = new LinkedBlockingQueue<>();
  private LeaderObserver observer;
  private Leading leading;

  Candidate(Client client, byte[] name, LockOptions options) {
    this.client = client;
    this.name = name;
    this.options = options;
  }

  Term campaign(Values values) throws InterruptedException {
    Election election = election(values);
    return values.isEndless()
        ? election.campaign()
        : election.campaign(values.duration("wait_ms"));
  }

  private Election election(Values values) {
    return Defects.withId(client.election(name), values.text("id")).with(options);
  }

  Answer lead(String op, Values values) throws InterruptedException {
    switch (op) {
      case "lead":
        leading = new Leading(election(values));
        return Answer.ok();
      case "event":
        return leading.event(values);
      default:
        return leading.stop();
    }
  }

  static Answer granted(Term term) {
    return Answer.ok().add("fence", term.number()).add("id", term.id());
  }

  /** What there is to see, as long as the client is open: afterwards an observer sees no more. */
  Answer observe(Values values) throws InterruptedException {
    begin();
    long startNs = System.nanoTime();
    long limitNs = TimeUnit.MILLISECONDS.toNanos(values.number("wait_ms"));
    do {
      Optional<Leader> leader = seen.poll(LOOK_MS, TimeUnit.MILLISECONDS);
      if (leader != null) {
        return Client.show(leader);
      }
      if (client.isClosed()) {
        return new Answer(Status.E_CLOSED);
      }
    } while (values.isEndless() || System.nanoTime() - startNs < limitNs);
    return new Answer(Status.TIMEOUT);
  }

  private synchronized void begin() {
    if (observer == null) {
      observer = client.election(name).observe(seen::put);
    }
  }
}

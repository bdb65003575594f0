// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import io.redlatch.Election;
import io.redlatch.Finding;
import io.redlatch.Leader;
import io.redlatch.Lease;
import io.redlatch.LockInfo;
import io.redlatch.LockName;
import io.redlatch.LockOptions;
import io.redlatch.NamedLock;
import io.redlatch.NamedReadWriteLock;
import io.redlatch.NamedSemaphore;
import io.redlatch.Redlatch;
import io.redlatch.Redlock;
import io.redlatch.Status;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/** The client of this process, of one server or of a quorum, and what is asked of it. */
final class Client {
  private static final byte[] NOTHING = {};
  private static final Duration FOREVER = Duration.ofMillis(Long.MAX_VALUE);

  private Redlatch redlatch;
  private Redlock redlock;
  private volatile boolean isClosed;

  boolean isQuorum() {
    return redlock != null;
  }

  NamedLock lock(byte[] name) {
    return isQuorum() ? redlock.lock(name) : redlatch.lock(name);
  }

  NamedLock reentrantLock(byte[] name, byte[] owner) {
    return redlatch.reentrantLock(name, owner);
  }

  NamedReadWriteLock readWriteLock(byte[] name) {
    return redlatch.readWriteLock(name);
  }

  /** Over a quorum there is none. */
  NamedLock lockAll(List<LockName> names) {
    return redlatch.lockAll(names);
  }

  /** Over a quorum there is none. */
  NamedSemaphore semaphore(byte[] name, int limit) {
    return redlatch.semaphore(name, limit);
  }

  Lease attach(byte[] name, Values values, LockOptions options) {
    return redlatch.attach(name, values.text("token"), values.number("fence"), options);
  }

  Answer open(Values values) {
    if (values.has("urls")) {
      List<String> urls = Arrays.asList(values.text("urls").split(" "));
      redlock = Redlock.open(Defects.oneNode(urls), Options.ofClient(values));
    } else {
      redlatch = Redlatch.open(values.text("url"), Options.ofClient(values));
    }
    return Answer.ok();
  }

  Answer connect(Values values) {
    Duration wait = values.isEndless() ? FOREVER : values.duration("wait_ms");
    if (isQuorum()) {
      redlock.connect(wait);
    } else {
      redlatch.connect(wait);
    }
    return Answer.ok();
  }

  Answer check(Values values) {
    Duration wait = values.duration("wait_ms");
    Answer answer = Answer.ok();
    for (Finding one : isQuorum() ? redlock.check(wait) : redlatch.check(wait)) {
      answer.add(one.id().replace('-', '_'), one.level().name().toLowerCase(Locale.ROOT));
    }
    return answer;
  }

  boolean isClosed() {
    return isClosed;
  }

  Answer close() {
    isClosed = true;
    if (isQuorum()) {
      redlock.close();
    } else if (redlatch != null) {
      redlatch.close();
    }
    return Answer.ok();
  }

  Answer forceRelease(Values values) {
    byte[] name = Defects.cut(values.bytes("name"));
    redlatch.forceRelease(name, values.bytes("token"));
    return Answer.ok();
  }

  Answer forceReleaseAny(Values values) {
    redlatch.forceReleaseAny(Defects.cut(values.bytes("name")));
    return Answer.ok();
  }

  Answer recall(String op, Values values) {
    if (isQuorum()) {
      return new Answer(Status.E_UNSUPPORTED); // A Redlock has no method for it.
    }
    byte[] name = Defects.cut(values.bytes("name"));
    String reason = values.text("reason");
    boolean isRecall = op.equals("recall");
    return Answer.ok()
        .add("heard", isRecall ? redlatch.recall(name, reason) : redlatch.resign(name, reason));
  }

  Answer onceForget(Values values) {
    if (isQuorum()) {
      return new Answer(Status.E_UNSUPPORTED); // A Redlock has no method for it.
    }
    redlatch.onceForget(Defects.cut(values.bytes("name")));
    return Answer.ok();
  }

  /** Over a quorum there is none. */
  Election election(byte[] name) {
    return redlatch.election(name);
  }

  Answer elections(String op, Values values) {
    if (isQuorum()) {
      return new Answer(Status.E_UNSUPPORTED); // A Redlock has no method for it.
    }
    Election election = election(Defects.cut(values.bytes("name")));
    return op.equals("leader")
        ? show(election.leader())
        : Answer.ok().add("ids", String.join(",", election.participants()));
  }

  static Answer show(Optional<Leader> leader) {
    return Answer.ok()
        .add("id", leader.map(Leader::id).orElse(""))
        .add("term", leader.map(Leader::term).orElse(0L));
  }

  /** Over a quorum there are none. */
  Jobs jobs(byte[] name, LockOptions options) {
    return new Jobs(redlatch, name, options);
  }

  Answer list(Values values) {
    List<String> names = new ArrayList<>();
    redlatch.list(values.text("pattern")).forEach(info -> names.add(info.name()));
    Collections.sort(names);
    int rows = names.size();
    return Answer.ok()
        .add("rows", rows)
        .add("first", rows == 0 ? "" : names.get(0))
        .add("last", rows == 0 ? "" : names.get(rows - 1));
  }

  Answer statuses() {
    Answer answer = Answer.ok();
    for (Status status : Status.values()) {
      if (status != Status.UNKNOWN) {
        int traits = (status.maybeApplied() ? 1 : 0) + (status.isRetryable() ? 2 : 0);
        answer.add("RL_" + Defects.mistaken(status), status.number() + "/" + traits);
      }
    }
    return answer;
  }

  Answer inspect(Values values) {
    byte[] name = Defects.cut(values.bytes("name"));
    LockInfo info = redlatch.inspect(name);
    Answer answer =
        Answer.ok()
            .add("rows", 1)
            .add("holder_rows", info.holders().size())
            .add("first_rows", info.waiters().size())
            .add("state", info.state().ordinal())
            .add("remaining_ms", ms(info.remaining()))
            .add("fence", info.fence())
            .add("waiting", info.waiting())
            .add("server_ms", info.serverTime().toEpochMilli())
            .add("type", info.type())
            .add("name", info.nameBytes())
            .add("holding", info.holding())
            .add("owner", info.ownerBytes())
            .add("used", info.used())
            .add("limit", info.limit())
            .add("cap", info.cap());
    addHolder(answer, info.holders().stream().findFirst());
    addWaiter(answer, info.waiters().stream().findFirst());
    answer.add("mark_rows", info.marks().size());
    info.marks().stream().findFirst().ifPresent(mark -> addMark(answer, mark));
    return answer;
  }

  /** What is not there is 0 or "", as in C. */
  private static void addHolder(Answer answer, Optional<LockInfo.Holder> holder) {
    answer
        .add("holder_mode", holder.map(one -> one.mode().name()).orElse("NONE"))
        .add("holder_remaining_ms", holder.map(one -> ms(one.remaining())).orElse(0L))
        .add("holder_since_ms", holder.map(one -> unixMs(one.since())).orElse(0L))
        .add("holder_token", holder.map(LockInfo.Holder::tokenBytes).orElse(NOTHING))
        .add("holder_permits", holder.map(LockInfo.Holder::permits).orElse(0L))
        .add("holder_who", holder.map(LockInfo.Holder::who).orElse(""))
        .add("holder_candidate", holder.map(LockInfo.Holder::candidateBytes).orElse(NOTHING))
        .add("holder_label", holder.map(LockInfo.Holder::labelBytes).orElse(NOTHING));
  }

  private static void addWaiter(Answer answer, Optional<LockInfo.Waiter> first) {
    answer
        .add("first_mode", first.map(one -> one.mode().name()).orElse("NONE"))
        .add("first_since_ms", first.map(one -> unixMs(one.since())).orElse(0L))
        .add("first_who", first.map(LockInfo.Waiter::who).orElse(""))
        .add("first_candidate", first.map(LockInfo.Waiter::candidateBytes).orElse(NOTHING))
        .add("first_token", first.map(LockInfo.Waiter::token).orElse(""));
  }

  private static void addMark(Answer answer, LockInfo.Mark mark) {
    answer.add("mark_done", mark.isDone() ? 1 : 0).add("mark_tries", mark.tries());
  }

  private static long ms(Optional<Duration> remaining) {
    return remaining.map(Duration::toMillis).orElse(-1L);
  }

  private static long unixMs(Optional<Instant> time) {
    return time.map(Instant::toEpochMilli).orElse(0L);
  }
}

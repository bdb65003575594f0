// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import io.redlatch.Lease;
import io.redlatch.LockName;
import io.redlatch.LockOptions;
import io.redlatch.NamedLock;
import io.redlatch.NamedSemaphore;
import io.redlatch.RedlatchException;
import io.redlatch.SemaphoreStats;
import io.redlatch.Status;
import io.redlatch.Term;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

/** A named lock of a case: how it is taken, and its last lease. */
final class Lock {
  private static final int ATTACH_COUNT = 64;

  private final Client client;
  private final boolean isReentrant;
  private final boolean isMutex;
  private final byte[] name;
  private final byte[] owner;
  private final boolean isSemaphore;
  private final List<LockName> names; // of several; else empty
  private final int limit;
  private final int permits;
  private final LockOptions options;
  private final Candidate candidate;
  private volatile Holding held;
  private Started<?> started;

  Lock(Client client, Values values, LockOptions options) {
    this.client = client;
    this.options = options;
    isReentrant = values.text("kind").equals("reentrant");
    isMutex = values.text("kind").equals("mutex");
    isSemaphore = values.isSemaphore();
    names = values.isAll() ? values.names() : List.of();
    limit = values.small("limit");
    permits = values.permits();
    name = values.bytes("name");
    owner = Defects.ownOwner(values.bytes("owner"));
    candidate = new Candidate(client, Defects.cut(name), options);
  }

  Answer run(String op, Values values) throws InterruptedException {
    switch (op) {
      case "acquire":
      case "acquire_read":
      case "acquire_write":
        return acquire(op, values);
      case "start":
      case "start_read":
      case "start_write":
        return start(op.replace("start", "acquire"), values);
      case "start_upgrade":
        started = Started.inThread(upgrade((Held) held, values), Answer::granted);
        return new Answer(Status.PENDING);
      case "poll":
        return started.poll(values);
      case "cancel":
        return started.cancel();
      case "attach":
        return granted(attach(values));
      case "attach_all":
        return attachAll(values);
      case "once":
      case "flight":
        return client.isQuorum()
            ? new Answer(Status.E_UNSUPPORTED) // A Redlock has no method for it.
            : client.jobs(Defects.cut(name), options).run(op, values);
      case "campaign":
      case "start_campaign":
      case "observe":
        return elect(op, values);
      case "lead":
      case "event":
      case "stop":
        return candidate.lead(op, values);
      case "stats":
        return stats();
      case "release":
        // Java has no lock object that knows: what never held has no lease, and there is nothing to
        // call.
        return held == null ? new Answer(Status.E_NOT_HELD) : held.release();
      default:
        return held.run(op, values);
    }
  }

  private static Started.Work<Lease> upgrade(Held held, Values values) {
    return () -> {
      held.upgrade(values);
      return null;
    };
  }

  private Answer elect(String op, Values values) throws InterruptedException {
    if (client.isQuorum()) {
      return new Answer(Status.E_UNSUPPORTED); // A Redlock has no method for it.
    }
    if (op.equals("observe")) {
      return candidate.observe(values);
    }
    if (!isMutex || values.text("mode").equals("read")) {
      return new Answer(Status.E_INVALID); // Java has no words for it.
    }
    if (op.equals("campaign")) {
      return leads(candidate.campaign(values));
    }
    started = Started.inThread(() -> candidate.campaign(values), this::leads);
    return new Answer(Status.PENDING);
  }

  private Answer leads(Term term) {
    held = new HeldTerm(term);
    return Candidate.granted(term);
  }

  private NamedLock way(String op) {
    byte[] cut = Defects.cut(name);
    NamedLock lock;
    switch (Defects.otherMode(op)) {
      case "acquire_read":
        lock = client.readWriteLock(cut).readLock();
        break;
      case "acquire_write":
        lock = client.readWriteLock(cut).writeLock();
        break;
      default:
        lock = isReentrant ? client.reentrantLock(cut, owner) : client.lock(cut);
        lock = names.isEmpty() ? lock : client.lockAll(names);
        break;
    }
    return lock.with(options);
  }

  private NamedSemaphore semaphore() {
    return client.semaphore(Defects.cut(name), limit).with(options);
  }

  private Answer stats() {
    SemaphoreStats stats = semaphore().stats();
    return Answer.ok()
        .add("used", stats.used())
        .add("limit", stats.limit())
        .add("cap", stats.cap().orElse(-1))
        .add("waiting", stats.waiting());
  }

  private Answer acquirePermits(Values values) throws InterruptedException {
    if (client.isQuorum()) {
      return new Answer(Status.E_UNSUPPORTED); // A Redlock has no method for it.
    }
    NamedSemaphore semaphore = semaphore();
    if (values.isTry()) {
      return semaphore.tryAcquire(permits).map(this::granted).orElse(new Answer(Status.BUSY));
    }
    return granted(
        values.isEndless()
            ? semaphore.acquire(permits)
            : semaphore.acquire(permits, values.duration("wait_ms")));
  }

  private CompletableFuture<Lease> startPermits(Values values) {
    return values.isEndless()
        ? semaphore().acquireAsync(permits)
        : semaphore().acquireAsync(permits, values.duration("wait_ms"));
  }

  private Answer acquire(String op, Values values) throws InterruptedException {
    if (isSemaphore) {
      return acquirePermits(values);
    }
    if (!names.isEmpty() && client.isQuorum()) {
      return new Answer(Status.E_UNSUPPORTED); // A Redlock has no method for it.
    }
    NamedLock lock = way(op);
    if (values.isTry()) {
      return lock.tryAcquire().map(this::granted).orElse(new Answer(Status.BUSY));
    }
    return granted(values.isEndless() ? lock.acquire() : lock.acquire(values.duration("wait_ms")));
  }

  private Answer start(String op, Values values) {
    CompletableFuture<Lease> future = isSemaphore ? startPermits(values) : startLock(op, values);
    started = Started.acquisition(future, this::granted);
    return new Answer(Status.PENDING);
  }

  private CompletableFuture<Lease> startLock(String op, Values values) {
    NamedLock lock = way(op);
    return values.isEndless() ? lock.acquireAsync() : lock.acquireAsync(values.duration("wait_ms"));
  }

  private Lease attach(Values values) {
    if (isSemaphore) {
      return semaphore().attach(permits, values.text("token"), values.number("fence"));
    }
    return client.attach(Defects.cut(name), values, options);
  }

  private Answer attachAll(Values values) throws InterruptedException {
    ConcurrentLinkedQueue<Lease> granted = new ConcurrentLinkedQueue<>();
    AtomicInteger refused = new AtomicInteger();
    CountDownLatch begin = new CountDownLatch(1);
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < ATTACH_COUNT; i++) {
      Thread thread =
          new Thread(
              () -> {
                try {
                  begin.await();
                  granted.add(attach(values));
                } catch (InterruptedException | RedlatchException failure) {
                  if (failure instanceof RedlatchException known
                      && known.status() == Status.E_NOT_HELD) {
                    refused.incrementAndGet();
                  }
                }
              });
      thread.start();
      threads.add(thread);
    }
    begin.countDown();
    for (Thread thread : threads) {
      thread.join();
    }
    Answer answer = Answer.ok().add("granted", granted.size()).add("refused", refused.get());
    for (Lease lease : granted) {
      held = new Held(lease, isMutex);
      answer.add("fence", lease.fence()).add("token", lease.token()).add("mode", lease.mode());
    }
    return answer;
  }

  private Answer granted(Lease lease) {
    held = new Held(lease, isMutex);
    Answer answer = Answer.granted(lease);
    if (!names.isEmpty()) {
      answer.add("second_fence", List.copyOf(lease.fences().values()).get(1));
    }
    return isSemaphore ? answer.add("permits", lease.permits()) : answer;
  }

  void join() {
    if (started != null) {
      started.join();
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class RecallTest extends ServerTest {
  private static final int HOLDERS = 64;
  private static final int MOST_BYTES = 128;

  private final List<String> heard = new CopyOnWriteArrayList<>();

  @BeforeEach
  void waitForCallbacks() {
    TermRun.interruptedMs = 1_000 * Wait.PATIENCE_S;
  }

  @AfterEach
  void restore() {
    TermRun.interruptedMs = 1_000;
  }

  /** By a client of its own: a client sends one recall a second for a name. */
  private long recall(String name, String reason) {
    try (Redlatch caller = Redlatch.connect(server.url())) {
      return caller.recall(name, reason);
    }
  }

  private void awaitHeard(String... reasons) {
    Wait.until(() -> heard.size() >= reasons.length);
    assertEquals(List.of(reasons), heard);
  }

  /** The reason that the next recall of the lease has. */
  private static CompletableFuture<String> reasonOf(Lease lease) {
    CompletableFuture<String> reason = new CompletableFuture<>();
    lease.onRecall(reason::complete);
    return reason;
  }

  private static void awaitCount(Lease lease, long count) {
    Wait.until(() -> lease.recallCount() >= count);
    assertEquals(count, lease.recallCount());
  }

  // ---- leases -----------------------------------------------------------------------------------

  @Test
  void holderHearsTheReasonOfAnotherClient() throws Exception {
    try (Lease lease = client().lock("x").with(LONG).acquire()) {
      lease.onRecall(heard::add);
      assertEquals(0, lease.recallCount());
      assertEquals(1, recall("x", "deploy of 1.2"));
      awaitHeard("deploy of 1.2");
      assertEquals(1, lease.recallCount());
      assertTrue(lease.isHeld(), "nothing is forced");
    }
    assertFalse(server.has("x"));
  }

  @Test
  void actionRunsOnceAndRecallsAreCounted() throws Exception {
    Lease lease = client().lock("x").with(LONG).acquire();
    lease.onRecall(heard::add);
    for (int i = 1; i <= 3; i++) {
      assertEquals(1, recall("x", "reason " + i));
      awaitCount(lease, i);
    }
    // An event that came twice would be there before that of a later lease.
    Lease other = client().lock("y").with(LONG).acquire();
    CompletableFuture<String> last = reasonOf(other);
    recall("y", "");
    assertEquals("", Wait.get(last));
    awaitHeard("reason 1");
  }

  @Test
  void eachActionRuns() throws Exception {
    Lease lease = client().lock("x").with(LONG).acquire();
    lease.onRecall(heard::add);
    lease.onRecall(heard::add, Runnable::run);
    CompletableFuture<String> own = reasonOf(lease);
    recall("x", "a");
    assertEquals("a", Wait.get(own));
    awaitHeard("a", "a");
    assertEquals("a", Wait.get(reasonOf(lease)));
  }

  @Test
  void actionThatComesAfterTheRecallRunsAtOnce() throws Exception {
    Redlatch client = client();
    Lease lease = client.lock("x").with(LONG).acquire();
    assertEquals(1, recall("x", "early"));
    // Without an action the client reads when it asks.
    Wait.until(() -> client.inspect("x").holding() == 1 && lease.recallCount() == 1);
    lease.onRecall(heard::add);
    awaitHeard("early");
    Lease unread = client.lock("y").with(LONG).acquire();
    assertEquals(1, recall("y", "unread"));
    assertEquals("unread", Wait.get(reasonOf(unread)));
  }

  @Test
  void releasedLeaseHearsNothing() throws Exception {
    Redlatch client = client();
    Lease released = client.lock("x").with(LONG).acquire();
    released.onRecall(heard::add);
    released.close();
    assertEquals(0, recall("x", "late"));
    released.onRecall(heard::add);
    Lease next = client.lock("x").with(LONG).acquire();
    CompletableFuture<String> reason = reasonOf(next);
    assertEquals(1, recall("x", "next"));
    assertEquals("next", Wait.get(reason));
    assertEquals(0, released.recallCount());
    assertEquals(List.of(), heard);
  }

  @Test
  void lostAndDetachedLeasesHearNothing() throws Exception {
    Redlatch client = client();
    Lease lost = client.lock("x").with(SHORT).acquire();
    Lease detached = client.lock("y").with(LONG).acquire();
    lost.onRecall(heard::add);
    detached.onRecall(heard::add);
    CompletableFuture<LockLostException> loss = lost.lost();
    client.forceRelease("x");
    Wait.get(loss);
    assertEquals(0, recall("x", "lost"));
    client.attach("y", detached.detach(), detached.fence()).close();
    try (Lease next = client.lock("y").with(LONG).acquire()) {
      CompletableFuture<String> reason = reasonOf(next);
      assertEquals(1, recall("y", "next"));
      assertEquals("next", Wait.get(reason));
    }
    assertEquals(List.of(), heard);
  }

  @Test
  void exceptionOfAnActionGoesToTheUncaughtExceptionHandler() throws Exception {
    CompletableFuture<Throwable> told = new CompletableFuture<>();
    Executor executor =
        work -> {
          Thread thread = new Thread(work);
          thread.setUncaughtExceptionHandler((where, failure) -> told.complete(failure));
          thread.start();
        };
    RuntimeException thrown = new RuntimeException("of the action");
    Lease lease = client().lock("x").with(LONG).acquire();
    lease.onRecall(
        reason -> {
          throw thrown;
        },
        executor);
    lease.onRecall(heard::add);
    recall("x", "a");
    assertSame(thrown, Wait.get(told));
    awaitHeard("a");
    assertThrows(NullPointerException.class, () -> lease.onRecall(null));
    assertThrows(NullPointerException.class, () -> lease.onRecall(heard::add, null));
  }

  @Test
  void actionMayRelease() throws Exception {
    Redlatch client = client();
    Lease lease = client.lock("x").with(LONG).acquire();
    lease.onRecall(reason -> lease.close());
    CompletableFuture<Lease> waiting = client().lock("x").acquireAsync();
    Wait.until(() -> waiting(client, "x") == 1);
    recall("x", "somebody waits");
    Wait.get(waiting).close();
    assertEquals(Lease.State.RELEASED, lease.state());
  }

  // ---- all kinds of locks -----------------------------------------------------------------------

  @Test
  void holdersOfEveryKindHearIt() throws Exception {
    Redlatch client = client();
    LockOptions hash = LONG.format(LockOptions.Format.HASH);
    LockOptions shared = LockOptions.DEFAULT.format(LockOptions.Format.HASH_RW);
    NamedReadWriteLock both = client.readWriteLock("x");
    List<NamedLock> kinds =
        List.of(
            client.lock("x").with(LONG),
            client.lock("x").with(hash),
            both.readLock().with(LONG),
            both.writeLock().with(LONG),
            both.readLock().with(shared),
            both.writeLock().with(shared),
            client.reentrantLock("x").with(LONG),
            client.lockAll(LockName.write("x")).with(LONG));
    for (int i = 0; i < kinds.size(); i++) {
      Lease lease = kinds.get(i).acquire();
      CompletableFuture<String> reason = reasonOf(lease);
      assertEquals(1, recall("x", "kind " + i));
      assertEquals("kind " + i, Wait.get(reason));
      lease.close();
    }
    client.once(
        "x",
        Duration.ofHours(1),
        lease -> {
          CompletableFuture<String> reason = reasonOf(lease);
          assertEquals(1, recall("x", "run"));
          heard.add(Wait.get(reason));
        });
    awaitHeard("run");
  }

  @Test
  void acquisitionsOfAnOwnerHearIt() throws Exception {
    NamedLock lock = client().reentrantLock("x").with(LONG);
    List<Lease> leases = List.of(lock.acquire(), lock.acquire(), lock.acquire());
    List<CompletableFuture<String>> reasons = leases.stream().map(RecallTest::reasonOf).toList();
    assertEquals(3, recall("x", "a"));
    for (CompletableFuture<String> reason : reasons) {
      assertEquals("a", Wait.get(reason));
    }
  }

  @Test
  void allReadersHearIt() throws Exception {
    List<CompletableFuture<String>> reasons = new ArrayList<>();
    for (Redlatch client : List.of(client(), client())) {
      for (int i = 0; i < 2; i++) {
        reasons.add(reasonOf(client.readWriteLock("x").readLock().with(LONG).acquire()));
      }
    }
    assertEquals(reasons.size(), recall("x", "to write"));
    for (CompletableFuture<String> reason : reasons) {
      assertEquals("to write", Wait.get(reason));
    }
  }

  @Test
  void allHoldersOfPermitsHearIt() throws Exception {
    List<Redlatch> clients = List.of(client(), client());
    List<CompletableFuture<String>> reasons = new ArrayList<>();
    for (int i = 0; i < HOLDERS; i++) {
      NamedSemaphore semaphore = clients.get(i % 2).semaphore("x", 2 * HOLDERS).with(LONG);
      reasons.add(reasonOf(semaphore.acquire(1 + i % 2)));
    }
    assertEquals(HOLDERS, recall("x", "fewer"));
    for (CompletableFuture<String> reason : reasons) {
      assertEquals("fewer", Wait.get(reason));
    }
  }

  @Test
  void leaseOfSeveralNamesHearsTheRecallOfEach() throws Exception {
    NamedLock lock = client().lockAll(LockName.write("a"), LockName.read("b")).with(LONG);
    Lease lease = lock.acquire();
    lease.onRecall(heard::add);
    assertEquals(1, recall("b", "of b"));
    awaitHeard("of b");
    assertEquals(1, recall("a", "of a"));
    awaitCount(lease, 2);
    lease.close();
    try (Lease path = client().lockPath("a/b/c").with(LONG).acquire()) {
      CompletableFuture<String> reason = reasonOf(path);
      assertEquals(1, recall("a/b", "of the folder"));
      assertEquals("of the folder", Wait.get(reason));
    }
  }

  @Test
  void manyLeasesHearTheirOwnReasons() throws Exception {
    Redlatch client = client();
    Set<String> expected = new TreeSet<>();
    for (int i = 0; i < HOLDERS; i++) {
      String name = "x" + i;
      client.lock(name).with(LONG).acquire().onRecall(reason -> heard.add(name + " " + reason));
      expected.add(name + " reason " + i);
    }
    Redlatch caller = client();
    for (int i = 0; i < HOLDERS; i++) {
      assertEquals(1, caller.recall("x" + i, "reason " + i));
    }
    Wait.until(() -> heard.size() >= HOLDERS);
    assertEquals(HOLDERS, heard.size());
    assertEquals(expected, new TreeSet<>(heard));
  }

  // ---- what is refused --------------------------------------------------------------------------

  @Test
  void lockWithoutHoldersIsNoError() {
    assertEquals(0, recall("x", "nobody"));
    server.ask("SET", "x", "data");
    assertEquals(0, recall("x", "no lock of redlatch"));
  }

  @Test
  void reasonIsShortTextInOneLine() throws Exception {
    Lease lease = client().lock("x").with(LONG).acquire();
    CompletableFuture<String> reason = reasonOf(lease);
    Redlatch client = client();
    for (String tooLong : List.of("x".repeat(MOST_BYTES + 1), "ü".repeat(MOST_BYTES / 2 + 1))) {
      String said =
          assertFails(Status.E_INVALID, () -> client.recall("x", tooLong)).getMessage();
      assertTrue(said.contains("reason must be at most 128 bytes (got 1"), said);
    }
    assertFails(Status.E_INVALID, () -> client.recall("x", "\ud800"));
    assertFails(Status.E_INVALID, () -> client.recall("", "a"));
    assertFails(Status.E_INVALID, () -> client.resign("", "a"));
    String longest = "ü\n".repeat(3) + "x".repeat(MOST_BYTES - 9);
    assertEquals(1, client.recall("x".getBytes(UTF_8), longest));
    String shown = Wait.get(reason);
    assertTrue(shown.startsWith("ü"), shown);
    assertTrue(shown.chars().noneMatch(Character::isISOControl), shown);
  }

  @Test
  void failuresHaveTheirStatus() throws Exception {
    Redlatch client = client();
    server.ask("ACL", "SETUSER", "default", "-@scripting");
    assertFails(Status.E_DENIED, () -> client.recall("x", "a"));
    client.close();
    assertFails(Status.E_CLOSED, () -> client.recall("x", "a"));
    assertFails(Status.E_CLOSED, () -> client.resign("x", "a"));
  }

  @Test
  void leaseOfARedlockHearsNoRecalls() throws Exception {
    ClientOptions options = ClientOptions.DEFAULT.with("restart_guard", "off");
    Duration wait = Duration.ofSeconds(Wait.PATIENCE_S);
    try (TestServer second = new TestServer();
        TestServer third = new TestServer();
        Redlock redlock =
            Redlock.connect(List.of(server.url(), second.url(), third.url()), options, wait);
        Lease lease = redlock.lock("x").acquire()) {
      String said =
          assertFails(Status.E_UNSUPPORTED, () -> lease.onRecall(heard::add)).getMessage();
      assertEquals(
          "recall 'x': a recall is not possible with a Redlock: use a client of one server", said);
      assertEquals(0, lease.recallCount());
    }
  }

  // ---- elections --------------------------------------------------------------------------------

  private LeaderElector elector(String id) {
    Election election = client().election("x").with(LONG).id(id);
    return closing(
        election
            .elector()
            .onElected(
                term -> {
                  term.onRecall(reason -> heard.add(id + " heard " + reason));
                  heard.add(id + " elected");
                })
            .onRevoked(term -> heard.add(id + " revoked"))
            .start());
  }

  private void await(String line, int count) {
    Wait.until(() -> heard.stream().filter(line::equals).count() >= count);
  }

  @Test
  void electorResignsAndCampaignsBehindTheOthers() throws Exception {
    Redlatch client = client();
    elector("a");
    await("a elected", 1);
    LeaderElector other = elector("b");
    Wait.until(() -> waiting(client, "x") == 1);
    assertEquals(1, client.resign("x", "drain"));
    await("b elected", 1);
    await("a heard drain", 1);
    heard.remove("a heard drain");
    assertEquals(List.of("a elected", "a revoked", "b elected"), heard);
    Wait.until(() -> client.election("x").participants().equals(List.of("b", "a")));
    other.close();
    await("a elected", 2);
  }

  @Test
  void electorWithoutOthersLeadsAgain() throws Exception {
    LeaderElector elector = elector("a");
    await("a elected", 1);
    Term first = elector.term().orElseThrow();
    assertEquals(1, client().resign("x".getBytes(UTF_8), ""));
    await("a elected", 2);
    assertFalse(first.isLeader());
    assertTrue(elector.term().orElseThrow().number() > first.number());
    assertTrue(elector.failure().isEmpty());
    elector.close();
    assertEquals(0, client().resign("x", ""));
  }

  @Test
  void electorKeepsTheLockUntilOnElectedHasStopped() throws Exception {
    CompletableFuture<Boolean> interrupted = new CompletableFuture<>();
    CountDownLatch mayStop = new CountDownLatch(1);
    Election election = client().election("x").with(LONG).id("a");
    LeaderElector elector =
        closing(
            election
                .elector()
                .onElected(
                    term -> {
                      try {
                        new CountDownLatch(1).await();
                      } catch (InterruptedException stopped) {
                        interrupted.complete(!term.isLeader());
                        mayStop.await();
                      }
                    })
                .start());
    Wait.until(elector::isLeader);
    elector("b");
    Redlatch client = client();
    Wait.until(() -> waiting(client, "x") == 1);
    assertEquals(1, client.resign("x", "drain"));
    assertTrue(Wait.get(interrupted));
    assertFalse(elector.isLeader());
    assertEquals("a", client.election("x").leader().orElseThrow().id());
    mayStop.countDown();
    await("b elected", 1);
  }

  @Test
  void termOfAProgramContinuesUntilItResigns() throws Exception {
    Redlatch client = client();
    try (Term term = client().election("x").with(LONG).campaign()) {
      term.onRecall(heard::add, Runnable::run);
      assertEquals(0, term.recallCount());
      assertEquals(1, client.resign("x", "drain"));
      awaitHeard("drain");
      assertEquals(1, term.recallCount());
      assertTrue(term.isLeader());
    }
    assertTrue(client.election("x").leader().isEmpty());
  }

  /** A watch keeps a lease that is held; one that has ended is collected. */
  @Test
  void endedLeaseIsCollected() throws Exception {
    Redlatch client = client();
    WeakReference<Lease> ended = new WeakReference<>(client.lock("x").acquire());
    ended.get().onRecall(heard::add);
    ended.get().close();
    Wait.until(
        () -> {
          System.gc();
          return ended.get() == null;
        });
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.Wait.Worker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Logger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class ElectionTest extends ServerTest {
  private static final int CANDIDATES = 64;

  private Election election(String id) {
    return client().election("x").with(LONG).id(id);
  }

  /** A candidate that waits, as the one with this number. */
  private static Worker<Term> waiter(Election election, int number) {
    Worker<Term> worker = new Worker<>(election::campaign);
    Wait.until(() -> election.participants().size() == number + 1);
    return worker;
  }

  private static Leader leader(Election election) {
    return election.leader().orElseThrow();
  }

  // ---- terms ------------------------------------------------------------------------------------

  @Test
  void candidateLeadsUntilItResigns() throws Exception {
    Election election = election("a");
    assertEquals(Optional.empty(), election.leader());
    assertEquals(List.of(), election.participants());
    Term term = election.campaign();
    assertTrue(term.isLeader());
    term.checkLeader();
    assertEquals("x", term.name());
    assertEquals("a", term.id());
    assertTrue(term.number() > 0);
    assertTrue(term.remaining().compareTo(Duration.ofMinutes(9)) > 0);
    assertEquals("Term[x, a, " + term.number() + "]", term.toString());
    Leader leader = leader(client().election("x"));
    assertEquals("a", leader.id());
    assertEquals(term.number(), leader.term());
    term.resign();
    assertFalse(term.isLeader());
    assertEquals(Duration.ZERO, term.remaining());
    assertFails(Status.E_NOT_HELD, term::checkLeader);
    assertEquals("Term[x, a, " + term.number() + ", over]", term.toString());
    term.close();
    assertEquals(Optional.empty(), election.leader());
    assertFalse(server.has("x"));
  }

  @Test
  void leaderIsKnownFromTheGrantOn() throws Exception {
    Redlatch observer = client();
    Worker<Term> next;
    try (Term term = election("a").campaign()) {
      next = waiter(election("b"), 1);
      assertEquals("a", leader(observer.election("x")).id());
      assertTrue(term.isLeader());
    }
    // The grant was made by the release.
    Leader leader = leader(observer.election("x"));
    assertEquals("b", leader.id());
    try (Term term = next.end()) {
      assertEquals(term.number(), leader.term());
    }
  }

  @Test
  void termsRiseAndCandidatesLeadInTheirOrder() throws Exception {
    Election first = election("0");
    List<Worker<Term>> waiters = new ArrayList<>();
    long last;
    try (Term term = first.campaign()) {
      last = term.number();
      for (int i = 1; i <= 3; i++) {
        waiters.add(waiter(election("" + i), i));
      }
      assertEquals(List.of("0", "1", "2", "3"), first.participants());
    }
    int count = 1;
    for (Worker<Term> waiter : waiters) {
      try (Term term = waiter.end()) {
        assertEquals("" + count++, term.id());
        assertTrue(term.number() > last);
        last = term.number();
        assertEquals(last, leader(first).term());
      }
    }
    assertEquals(List.of(), first.participants());
  }

  /** Each of one client has its own place in the queue. */
  @Test
  void manyCandidatesOfOneClientLeadOneAfterTheOther() throws Exception {
    Redlatch client = client();
    Set<String> ids =
        IntStream.range(0, CANDIDATES).mapToObj(i -> "c" + i).collect(Collectors.toSet());
    AtomicInteger leaders = new AtomicInteger();
    List<Long> terms = new CopyOnWriteArrayList<>();
    List<Worker<?>> crowd = new ArrayList<>();
    try (Term term = election("first").campaign()) {
      terms.add(term.number());
      for (String id : ids) {
        Election election = client.election("x").with(LONG).id(id);
        crowd.add(
            Worker.doing(
                () -> {
                  try (Term own = election.campaign()) {
                    assertEquals(1, leaders.incrementAndGet());
                    terms.add(own.number());
                    leaders.decrementAndGet();
                  }
                }));
      }
      Wait.until(() -> waiting(client, "x") == CANDIDATES);
      Set<String> seen = new TreeSet<>(client.election("x").participants());
      assertTrue(seen.remove("first"));
      assertEquals(new TreeSet<>(ids), seen);
    }
    for (Worker<?> one : crowd) {
      one.end();
    }
    assertEquals(CANDIDATES + 1, terms.size());
    assertEquals(terms.stream().sorted().distinct().toList(), terms);
    assertFalse(server.hasQueue("x"));
  }

  @Test
  void holderWithoutAnIdIsNoLeader() throws Exception {
    Election election = election("a");
    try (Lease held = client().lock("x").with(LONG).acquire()) {
      assertEquals(Optional.empty(), election.leader());
      assertTimesOut(election::campaign);
      assertThrows(NotAcquiredException.class, () -> election.campaign(Duration.ZERO));
      assertTrue(held.isHeld());
    }
    try (Term term = election.campaign(Duration.ZERO)) {
      assertTrue(client().lock("x").tryAcquire().isEmpty());
      assertTrue(term.isLeader());
    }
  }

  @Test
  void lossEndsATerm() throws Exception {
    Redlatch client = client();
    Term term = client.election("x").with(SHORT).id("a").campaign();
    CountDownLatch lost = new CountDownLatch(2);
    term.onLost(lost::countDown);
    term.onLost(lost::countDown, Runnable::run);
    client.forceRelease("x");
    lost.await();
    assertFalse(term.isLeader());
    assertThrows(LockLostException.class, term::checkLeader);
    assertThrows(LockLostException.class, term::close);
    term.close();
    try (Term next = client.election("x").campaign()) {
      assertTrue(next.number() > term.number());
    }
  }

  @Test
  void interruptEndsACampaign() throws Exception {
    try (Term term = election("a").campaign()) {
      Worker<Term> waiter = waiter(election("b"), 1);
      waiter.thread.interrupt();
      assertThrows(InterruptedException.class, waiter::end);
      Wait.until(() -> !server.hasQueue("x"));
      assertTrue(term.isLeader());
    }
    assertFalse(server.has("x"));
  }

  @Test
  void wrongIdsAndOptionsAreRefused() {
    Election election = client().election("x");
    LockOptions hash = LockOptions.DEFAULT.format(LockOptions.Format.HASH);
    for (Election wrong :
        List.of(
            election.id(""),
            election.id("x".repeat(257)),
            election.with(hash),
            election.with(LockOptions.DEFAULT.owner("me").reentrant(true)),
            election.with(LockOptions.DEFAULT.ttl(Duration.ofMillis(1))),
            client().election(""))) {
      assertFails(Status.E_INVALID, wrong::campaign);
    }
    assertFails(Status.E_INVALID, () -> election.id("\ud800"));
    assertFails(Status.E_INVALID, () -> election.campaign(Duration.ofMillis(-1)));
    assertFails(Status.E_INVALID, () -> client().election("").leader());
    assertFalse(server.has("x"));
  }

  @Test
  void namesAndIdsAreText() throws Exception {
    byte[] name = {'a', 0, (byte) 0xff};
    String id = "\u00e9 \u4e16 " + "x".repeat(249);
    assertEquals(256, id.getBytes(UTF_8).length);
    Election election = client().election(name).id(id);
    try (Term term = election.campaign()) {
      assertEquals(id, term.id());
      assertEquals(id, leader(client().election(name)).id());
    }
    assertEquals("Election[x, a]", election("a").toString());
  }

  @Test
  void defaultIdIsOfThePodOrTheProcess() {
    assertEquals("pod-0", Election.defaultId("pod-0"));
    String process = Election.defaultId("");
    assertEquals(process, Election.defaultId(null));
    assertTrue(process.matches("[^:]+:" + ProcessHandle.current().pid()), process);
    assertEquals(
        Election.defaultId(System.getenv("POD_NAME")), client().election("x").id());
  }

  // ---- observers --------------------------------------------------------------------------------

  /** What an observer has seen: ids, and "" where there was no leader. */
  private List<String> observed(Redlatch client) {
    List<String> seen = new CopyOnWriteArrayList<>();
    closing(
        client
            .election("x")
            .observe(leader -> seen.add(leader.map(Leader::id).orElse(""))));
    return seen;
  }

  private static void awaitLast(List<String> seen, String id) {
    Wait.until(() -> !seen.isEmpty() && seen.get(seen.size() - 1).equals(id));
  }

  @Test
  void observerSeesThePresentLeaderFirst() throws Exception {
    List<String> early = observed(client());
    awaitLast(early, "");
    try (Term term = election("a").campaign()) {
      List<String> late = observed(client());
      awaitLast(late, "a");
      awaitLast(early, "a");
      Worker<Term> next = waiter(election("b"), 1);
      term.resign();
      try (Term other = next.end()) {
        awaitLast(late, "b");
        awaitLast(early, "b");
        assertTrue(other.number() > term.number());
      }
      awaitLast(late, "");
      assertEquals(List.of("a", "b", ""), late);
      awaitLast(early, "");
      assertEquals(List.of("", "a", "b", ""), early);
    }
  }

  @Test
  void observerSeesATermOfTheSameIdAsANewOne() throws Exception {
    List<Long> terms = new CopyOnWriteArrayList<>();
    ElectionAction<Optional<Leader>> action =
        leader -> leader.ifPresent(found -> terms.add(found.term()));
    closing(client().election("x").observe(action));
    List<Long> led = new ArrayList<>();
    for (int i = 1; i <= 3; i++) {
      int count = i;
      try (Term term = election("a").campaign()) {
        led.add(term.number());
        Wait.until(() -> terms.size() == count);
      }
    }
    assertEquals(led, terms);
  }

  @Test
  void manyObserversSeeTheLeader() throws Exception {
    Redlatch client = client();
    List<List<String>> all = new ArrayList<>();
    for (int i = 0; i < CANDIDATES; i++) {
      all.add(observed(client));
    }
    try (Term term = election("a").campaign()) {
      all.forEach(seen -> awaitLast(seen, "a"));
      assertTrue(term.isLeader());
    }
    all.forEach(seen -> awaitLast(seen, ""));
  }

  @Test
  void observerSurvivesARestartOfTheServer() throws Exception {
    List<String> seen = observed(client());
    Election election = client().election("x").with(SHORT).id("a");
    Term term = election.campaign();
    awaitLast(seen, "a");
    server.restart();
    Wait.until(() -> !term.isLeader());
    awaitLast(seen, "");
    try (Term next = election.id("b").campaign()) {
      awaitLast(seen, "b");
      assertTrue(next.number() > term.number());
    }
    assertThrows(LockLostException.class, term::close);
  }

  @Test
  void closedObserverSeesNothingMore() throws Exception {
    Redlatch client = client();
    List<String> closed = new CopyOnWriteArrayList<>();
    CountDownLatch first = new CountDownLatch(1);
    LeaderObserver observer =
        client
            .election("x")
            .observe(
                leader -> {
                  closed.add(leader.map(Leader::id).orElse(""));
                  first.countDown();
                });
    first.await();
    observer.close();
    observer.close();
    List<String> open = observed(client);
    try (Term term = election("a").campaign()) {
      awaitLast(open, "a");
      assertTrue(term.isLeader());
    }
    assertEquals(List.of(""), closed);
    client.close();
    assertFails(Status.E_CLOSED, () -> client.election("x").leader());
  }

  @Test
  void exceptionOfAnObserverIsLogged() throws Exception {
    List<Throwable> thrown = new CopyOnWriteArrayList<>();
    Logger logger = Logger.getLogger("io.redlatch");
    logger.setFilter(record -> !thrown.add(record.getThrown()));
    Exception ofTheAction = new Exception("of the action");
    AtomicInteger calls = new AtomicInteger();
    ElectionAction<Optional<Leader>> failing =
        leader -> {
          calls.incrementAndGet();
          throw ofTheAction;
        };
    LeaderObserver observer = closing(client().election("x").observe(failing));
    Wait.until(() -> calls.get() == 1);
    try (Term term = election("a").campaign()) {
      Wait.until(() -> thrown.size() == 2);
      assertTrue(term.isLeader());
      observer.close();
    }
    logger.setFilter(null);
    assertEquals(2, calls.get());
    assertSame(ofTheAction, assertInstanceOf(Exception.class, thrown.get(0)));
  }
}

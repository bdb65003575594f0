// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

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
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class LeaderElectorTest extends ServerTest {
  private static final int ELECTORS = 64;
  private static final Logger LOGGER = Logger.getLogger("io.redlatch");

  /** A callback of a candidate that was called. */
  private record Event(String id, String what, long term) {}

  private final List<Event> events = new CopyOnWriteArrayList<>();
  private final List<LogRecord> log = new CopyOnWriteArrayList<>();

  /** What blocks until the test lets it end. */
  private final CountDownLatch finish = new CountDownLatch(1);

  @BeforeEach
  void prepare() {
    TermRun.interruptedMs = 1_000 * Wait.PATIENCE_S;
    LeaderElector.closeWaitMs = 1_000 * Wait.PATIENCE_S;
    LOGGER.setFilter(record -> !log.add(record));
  }

  @AfterEach
  void restore() {
    finish.countDown();
    LOGGER.setFilter(null);
    ElectionCall.longRunMs = 5_000;
    TermRun.interruptedMs = 1_000;
    LeaderElector.closeWaitMs = 10_000;
  }

  private Election election(String id) {
    return client().election("x").with(LONG).id(id);
  }

  private ElectionAction<Term> noting(String what) {
    return term -> events.add(new Event(term.id(), what, term.number()));
  }

  /** A builder whose callbacks are noted. */
  private LeaderElector.Builder noted(Election election) {
    return election.elector().onElected(noting("elected")).onRevoked(noting("revoked"));
  }

  private LeaderElector start(LeaderElector.Builder builder) {
    return closing(builder.start());
  }

  private long count(String id, String what) {
    return events.stream().filter(one -> one.id.equals(id) && one.what.equals(what)).count();
  }

  private void await(String id, String what, int count) {
    Wait.until(() -> count(id, what) >= count);
  }

  private void awaitLine(String text) {
    Wait.until(() -> log.stream().anyMatch(one -> one.getMessage().contains(text)));
  }

  /** Each elected candidate was revoked before the next one was elected, and terms rise. */
  private void assertInOrder() {
    long last = 0;
    for (int i = 0; i < events.size(); i++) {
      Event one = events.get(i);
      if (i % 2 == 0) {
        assertEquals("elected", one.what, events::toString);
        assertTrue(one.term > last, events::toString);
        last = one.term;
      } else {
        assertEquals(new Event(events.get(i - 1).id, "revoked", last), one, events::toString);
      }
    }
  }

  /** A callback that ignores interrupts, until the test ends it. */
  private void block() {
    boolean isInterrupted = false;
    while (true) {
      try {
        finish.await();
        break;
      } catch (InterruptedException ignored) {
        isInterrupted = true;
      }
    }
    if (isInterrupted) {
      Thread.currentThread().interrupt();
    }
  }

  // ---- terms ------------------------------------------------------------------------------------

  @Test
  void electorLeadsUntilItIsClosed() throws Exception {
    Election election = election("a");
    LeaderElector elector = start(noted(election));
    await("a", "elected", 1);
    assertTrue(elector.isLeader());
    Term term = elector.term().orElseThrow();
    assertEquals(term.number(), events.get(0).term);
    assertEquals(term.number(), election.leader().orElseThrow().term());
    assertEquals("LeaderElector[x, a, leads]", elector.toString());
    assertSame(election, elector.election());
    assertFalse(elector.ended().isDone());
    elector.close();
    assertFalse(elector.isLeader());
    assertFalse(term.isLeader());
    assertEquals(1, count("a", "revoked"));
    assertFalse(server.has("x"));
    assertEquals(Optional.empty(), elector.failure());
    Wait.get(elector.ended());
    elector.close();
    elector.resign();
    assertEquals("LeaderElector[x, a]", elector.toString());
    assertEquals(2, events.size());
    assertEquals(List.of(), log);
  }

  @Test
  void electorsTakeTurnsWhenTheyResign() throws Exception {
    List<LeaderElector> electors = new ArrayList<>();
    for (String id : List.of("a", "b")) {
      electors.add(start(noted(election(id))));
      await("a", "elected", 1);
    }
    Redlatch client = client();
    for (int turn = 0; turn < 6; turn++) {
      LeaderElector leader = electors.get(turn % 2);
      await(leader.election().id(), "elected", turn / 2 + 1);
      List<String> order = turn % 2 == 0 ? List.of("a", "b") : List.of("b", "a");
      Wait.until(() -> client.election("x").participants().equals(order));
      leader.resign();
      leader.resign();
    }
    electors.forEach(LeaderElector::close);
    assertInOrder();
    assertEquals(0, events.size() % 2);
    Wait.until(() -> !server.has("x") && !server.hasQueue("x"));
  }

  @Test
  void termOfAnElectorCanBeResigned() throws Exception {
    CountDownLatch resigned = new CountDownLatch(1);
    LeaderElector elector =
        start(
            election("a")
                .elector()
                .onElected(
                    term -> {
                      events.add(new Event("a", "elected", term.number()));
                      if (resigned.getCount() > 0) {
                        term.close();
                        assertFalse(term.isLeader());
                        assertFails(Status.E_NOT_HELD, term::checkLeader);
                        resigned.countDown();
                      }
                    })
                .onRevoked(noting("revoked")));
    await("a", "elected", 2);
    resigned.await();
    elector.close();
    assertInOrder();
    assertEquals(List.of(), log);
  }

  @Test
  void manyElectorsLeadOneAfterTheOther() throws Exception {
    List<Redlatch> clients = List.of(client(), client());
    List<LeaderElector> electors = new ArrayList<>();
    for (int i = 0; i < ELECTORS; i++) {
      Election election = clients.get(i % 2).election("x").with(LONG).id("c" + i);
      CompletableFuture<LeaderElector> self = new CompletableFuture<>();
      LeaderElector elector =
          start(
              election
                  .elector()
                  .onElected(
                      term -> {
                        noting("elected").accept(term);
                        term.resign();
                      })
                  .onRevoked(
                      term -> {
                        noting("revoked").accept(term);
                        self.get().close(); // In a callback it does not wait.
                      }));
      self.complete(elector);
      electors.add(elector);
    }
    for (LeaderElector one : electors) {
      Wait.get(one.ended());
    }
    assertEquals(2 * ELECTORS, events.size());
    assertInOrder();
    assertFalse(server.hasQueue("x"));
  }

  @Test
  void lostTermIsRevokedAndFollowedByAnother() throws Exception {
    Redlatch client = client();
    LeaderElector elector = start(noted(client.election("x").with(SHORT).id("a")));
    await("a", "elected", 1);
    Term term = elector.term().orElseThrow();
    LeaderElector other = start(noted(election("b")));
    Wait.until(() -> waiting(client, "x") == 1);
    client.forceRelease("x");
    await("b", "elected", 1);
    await("a", "revoked", 1);
    assertFalse(term.isLeader());
    assertFalse(elector.isLeader());
    assertThrows(LockLostException.class, term::checkLeader);
    Wait.until(() -> client.election("x").participants().equals(List.of("b", "a")));
    other.close();
    await("a", "elected", 2);
    assertTrue(elector.term().orElseThrow().number() > events.get(1).term);
  }

  @Test
  void termEndsBeforeItsLeaseDoes() throws Exception {
    Redlatch client = client();
    LockOptions options = LockOptions.DEFAULT.ttl(Duration.ofSeconds(1)).renew(false);
    CompletableFuture<Term> first = new CompletableFuture<>();
    LeaderElector elector =
        start(
            noted(client.election("x").with(options).id("a"))
                .onElected(
                    term -> {
                      noting("elected").accept(term);
                      first.complete(term);
                    }));
    Term term = Wait.get(first);
    CompletableFuture<Boolean> ledBoth = new CompletableFuture<>();
    LeaderElector other =
        start(election("b").elector().onElected(own -> ledBoth.complete(term.isLeader())));
    assertFalse(Wait.get(ledBoth));
    await("a", "revoked", 1);
    elector.close();
    other.close();
  }

  @Test
  void electorLeadsAgainAfterARestartOfTheServer() throws Exception {
    Redlatch client = client();
    LeaderElector elector = start(noted(client.election("x").with(SHORT).id("a")));
    await("a", "elected", 1);
    server.restart();
    await("a", "elected", 2);
    elector.close();
    assertInOrder();
  }

  // ---- callbacks --------------------------------------------------------------------------------

  @Test
  void lockIsKeptUntilTheCallbacksHaveReturned() throws Exception {
    TermRun.interruptedMs = 1;
    LeaderElector elector =
        start(
            noted(election("a"))
                .onElected(
                    term -> {
                      noting("elected").accept(term);
                      block();
                      noting("returned").accept(term);
                    }));
    await("a", "elected", 1);
    LeaderElector other = start(noted(election("b")));
    Redlatch client = client();
    Wait.until(() -> waiting(client, "x") == 1);
    Term term = elector.term().orElseThrow();
    elector.resign();
    assertFalse(term.isLeader());
    await("a", "revoked", 1); // while onElected runs
    assertEquals("a", client.election("x").leader().orElseThrow().id());
    assertEquals(0, count("b", "elected"));
    finish.countDown();
    await("b", "elected", 1);
    assertEquals(
        List.of("elected", "revoked", "returned", "elected"),
        events.stream().map(Event::what).toList());
    other.close();
  }

  @Test
  void onElectedIsInterruptedAtTheEndOfTheTerm() throws Exception {
    CompletableFuture<Boolean> interrupted = new CompletableFuture<>();
    LeaderElector elector =
        start(
            noted(election("a"))
                .onElected(
                    term -> {
                      noting("elected").accept(term);
                      try {
                        finish.await();
                      } catch (InterruptedException expected) {
                        interrupted.complete(!term.isLeader());
                        throw expected;
                      }
                    }));
    await("a", "elected", 1);
    elector.close();
    assertTrue(Wait.get(interrupted));
    assertInOrder();
    assertEquals(List.of(), log);
  }

  @Test
  void failureOfOnElectedEndsTheTerm() throws Exception {
    Error thrown = new Error("of the callback");
    LeaderElector elector =
        start(
            noted(election("a"))
                .onElected(
                    term -> {
                      noting("elected").accept(term);
                      if (events.size() == 1) {
                        throw thrown;
                      }
                    }));
    await("a", "elected", 2);
    assertEquals(
        List.of("elected", "revoked", "elected"), events.stream().map(Event::what).toList());
    elector.close();
    assertInOrder();
    assertEquals(1, log.size());
    assertSame(thrown, log.get(0).getThrown());
    assertEquals("the callback onElected of election 'x' has failed", log.get(0).getMessage());
  }

  @Test
  void failuresOfOtherCallbacksAreLogged() throws Exception {
    RuntimeException thrown = new RuntimeException("of the callback");
    LeaderElector elector =
        start(
            election("a")
                .elector()
                .onElected(noting("elected"))
                .onRevoked(
                    term -> {
                      throw thrown;
                    })
                .onNewLeader(
                    leader -> {
                      throw thrown;
                    }));
    await("a", "elected", 1);
    awaitLine("the callback onNewLeader of election 'x' has failed");
    elector.resign();
    await("a", "elected", 2);
    awaitLine("the callback onRevoked of election 'x' has failed");
    elector.close();
    log.forEach(record -> assertSame(thrown, record.getThrown()));
    assertEquals(Optional.empty(), elector.failure());
  }

  @Test
  void callbackThatBlocksIsNamedInTheLog() throws Exception {
    ElectionCall.longRunMs = 20;
    start(noted(election("a")).onElected(term -> finish.await()));
    awaitLine("the callback onElected of election 'x' blocks, and delays others");
    StackTraceElement[] stack = log.get(0).getThrown().getStackTrace();
    assertTrue(stack.length > 0);
  }

  @Test
  void newLeadersAreAnnounced() throws Exception {
    List<String> seen = new CopyOnWriteArrayList<>();
    try (Term term = election("a").campaign()) {
      LeaderElector elector =
          start(
              noted(election("b"))
                  .onNewLeader(leader -> seen.add(leader.id() + " " + leader.term())));
      Wait.until(() -> seen.equals(List.of("a " + term.number())));
      Redlatch client = client();
      Wait.until(() -> waiting(client, "x") == 1);
      term.resign();
      await("b", "elected", 1);
      Wait.until(() -> seen.size() == 2);
      assertEquals("b " + events.get(0).term, seen.get(1));
      elector.close();
    }
  }

  @Test
  void onRevokedFollowsAnInterruptedOnElected() throws Exception {
    CountDownLatch inside = new CountDownLatch(1);
    LeaderElector elector =
        start(
            noted(election("a"))
                .onElected(
                    term -> {
                      inside.countDown();
                      while (term.isLeader()) {
                        Thread.onSpinWait();
                      }
                      noting("elected").accept(term);
                    }));
    inside.await();
    elector.close();
    assertInOrder();
    assertEquals(2, events.size());
  }

  // ---- the end ----------------------------------------------------------------------------------

  @Test
  void closeDuringACampaignLeavesNoPlaceInTheQueue() throws Exception {
    Redlatch client = client();
    try (Lease held = client.lock("x").with(LONG).acquire()) {
      List<LeaderElector> electors = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        electors.add(start(noted(election("a" + i))));
      }
      Wait.until(() -> waiting(client, "x") == 3);
      for (LeaderElector one : electors) {
        one.close();
        assertTrue(one.ended().isDone());
      }
      Wait.until(() -> !server.hasQueue("x"));
      assertTrue(held.isHeld());
    }
    assertFalse(server.has("x"));
    assertEquals(List.of(), events);
    assertEquals(List.of(), log);
  }

  /** Each of them is closed at another time of its campaign. */
  @Test
  void closeLeavesNothingBehindAtAnyTime() throws Exception {
    Redlatch client = client();
    for (int i = 0; i < 50; i++) {
      LeaderElector elector = noted(client.election("x").with(LONG).id("a")).start();
      for (int spin = 0; spin < i * 1000; spin++) {
        Thread.onSpinWait();
      }
      elector.close();
      assertFalse(elector.isLeader());
    }
    Wait.until(() -> !server.has("x") && !server.hasQueue("x"));
    assertInOrder();
    assertEquals(0, events.size() % 2);
  }

  @Test
  void closeDoesNotWaitForeverForACallback() throws Exception {
    LeaderElector.closeWaitMs = 20;
    TermRun.interruptedMs = 1;
    CountDownLatch inside = new CountDownLatch(1);
    ElectionAction<Term> blocking =
        term -> {
          inside.countDown();
          block();
        };
    LeaderElector elector = start(noted(election("a")).onElected(blocking));
    inside.await();
    elector.close();
    awaitLine("a callback still runs after the close of an elector of election 'x'");
    assertFalse(elector.ended().isDone());
    assertTrue(server.has("x"));
    finish.countDown();
    Wait.get(elector.ended());
    assertFalse(server.has("x"));
  }

  @Test
  void closeIsNotInterrupted() throws Exception {
    LeaderElector elector = start(noted(election("a")));
    await("a", "elected", 1);
    Worker<Boolean> closer =
        new Worker<>(
            () -> {
              Thread.currentThread().interrupt();
              elector.close();
              return Thread.interrupted();
            });
    assertTrue(closer.end());
    assertInOrder();
    assertFalse(server.has("x"));
  }

  @Test
  void failedCampaignIsRetried() throws Exception {
    server.ask("RPUSH", "x", "1");
    LeaderElector elector = start(noted(election("a")));
    awaitLine("a campaign of election 'x' has failed; the next try is in 1000 ms");
    assertFalse(elector.isLeader());
    assertEquals(List.of(), events);
    server.ask("DEL", "x");
    await("a", "elected", 1);
    assertEquals(Optional.empty(), elector.failure());
  }

  private void assertEnds(Status status, LeaderElector elector) {
    Throwable cause =
        assertThrows(ExecutionException.class, () -> Wait.get(elector.ended())).getCause();
    assertEquals(status, assertInstanceOf(RedlatchException.class, cause).status());
    assertSame(cause, elector.failure().orElseThrow());
    assertFalse(elector.isLeader());
    awaitLine("the elector of election 'x' has ended");
  }

  @Test
  void wrongOptionsEndAnElector() throws Exception {
    Election election = client().election("x");
    for (Election wrong :
        List.of(
            election.id(""),
            election.id("x".repeat(257)),
            election.with(LockOptions.DEFAULT.ttl(Duration.ofMillis(1))))) {
      assertFails(Status.E_INVALID, () -> wrong.elector().start());
    }
    LockOptions hash = LockOptions.DEFAULT.format(LockOptions.Format.HASH);
    assertEnds(Status.E_INVALID, start(noted(election.with(hash))));
    assertEquals(List.of(), events);
  }

  @Test
  void refusalOfTheServerEndsAnElector() throws Exception {
    Election election = election("a");
    server.ask("ACL", "SETUSER", "default", "-@scripting");
    assertEnds(Status.E_DENIED, start(noted(election)));
    assertEquals(List.of(), events);
  }

  @Test
  void closeOfTheClientEndsAnElector() throws Exception {
    Redlatch client = client();
    LeaderElector elector =
        start(noted(client.election("x").id("a")).onNewLeader(leader -> {}));
    await("a", "elected", 1);
    client.close();
    assertEnds(Status.E_CLOSED, elector);
    assertInOrder();
    assertEquals(2, events.size());
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
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
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;

class OnceTest extends ServerTest {
  private static final int CALLERS = 64;
  private static final Duration HOUR = Duration.ofHours(1);
  private static final OnceOptions DEFAULT = OnceOptions.DEFAULT;

  private final AtomicInteger runs = new AtomicInteger();

  /** One more run. */
  private void work(Lease lease) {
    lease.checkHeld();
    runs.incrementAndGet();
  }

  private boolean runs(Redlatch client) throws Exception {
    return client.once("x", HOUR, this::work);
  }

  /** A run that fails, with `thrown`. */
  private void fail(Redlatch client, OnceOptions options, Exception thrown) {
    Exception caught =
        assertThrows(
            Exception.class,
            () ->
                client.once(
                    "x",
                    HOUR,
                    options,
                    lease -> {
                      work(lease);
                      throw thrown;
                    }));
    assertSame(thrown, caught);
    assertEquals(0, caught.getSuppressed().length);
    assertFalse(server.has("x"));
  }

  private static LockInfo.Mark mark(Redlatch client) {
    List<LockInfo.Mark> marks = client.inspect("x").marks();
    assertEquals(1, marks.size());
    return marks.get(0);
  }

  private static void assertLasts(Duration most, LockInfo.Mark mark) {
    Duration left = mark.remaining().orElseThrow();
    assertTrue(left.compareTo(most) <= 0, left::toString);
    assertTrue(left.compareTo(most.minusMinutes(1)) > 0, left::toString);
  }

  // ---- success and failure ----------------------------------------------------------------------

  @Test
  void successIsRememberedForMostOfThePeriod() throws Exception {
    Redlatch client = client();
    assertTrue(runs(client));
    assertFalse(runs(client()));
    assertFalse(client.once("x".getBytes(UTF_8), HOUR, DEFAULT, this::work));
    assertEquals(1, runs.get());
    assertFalse(server.has("x"));
    assertTrue(mark(client).isDone());
    assertEquals(1, mark(client).tries());
    assertLasts(Duration.ofMinutes(54), mark(client));
  }

  @Test
  void nextPeriodRunsAgain() throws Exception {
    Redlatch client = client();
    Duration every = Duration.ofMillis(300);
    for (int period = 1; period <= 3; period++) {
      long begin = System.nanoTime();
      assertTrue(client.once("x", every, this::work));
      while (!client.once("x", every, lease -> {})) {
        Thread.onSpinWait();
      }
      // The server counts whole milliseconds.
      assertTrue(System.nanoTime() - begin >= 269_000_000L);
      assertEquals(period, runs.get());
      client.onceForget("x");
    }
  }

  @Test
  void failureLeavesATry() throws Exception {
    Redlatch client = client();
    fail(client, DEFAULT, new Exception("of the work"));
    assertFalse(mark(client).isDone());
    assertTrue(runs(client()));
    assertFalse(runs(client));
    assertTrue(mark(client).isDone());
    assertEquals(2, mark(client).tries());
    assertEquals(2, runs.get());
  }

  @Test
  void errorOfTheWorkIsAFailureToo() throws Exception {
    Redlatch client = client();
    Error thrown = new Error("of the work");
    OnceAction failing =
        lease -> {
          throw thrown;
        };
    assertSame(thrown, assertThrows(Error.class, () -> client.once("x", HOUR, failing)));
    assertTrue(runs(client));
  }

  @Test
  void triesAreUsedUp() throws Exception {
    Redlatch client = client();
    for (int i = 0; i < 2; i++) {
      fail(client, DEFAULT.tries(2), new IllegalStateException("of the work"));
    }
    assertFalse(client.once("x", HOUR, DEFAULT.tries(2), this::work));
    assertEquals(2, runs.get());
    fail(client, DEFAULT, new IllegalStateException("the third"));
    assertFalse(runs(client));
    assertEquals(3, runs.get());
    assertEquals(3, mark(client).tries());
  }

  @Test
  void keyNamesThePeriod() throws Exception {
    Redlatch client = client();
    byte[] bytes = {'a', 0, (byte) 0xff};
    for (int tries = 0; tries < 2; tries++) {
      boolean isFirst = tries == 0;
      assertEquals(isFirst, client.once("x", HOUR, DEFAULT.key("a"), this::work));
      assertEquals(isFirst, client.once("x", HOUR, DEFAULT.key("\u00e9"), this::work));
      assertEquals(isFirst, client.once("x", HOUR, DEFAULT.key(bytes), this::work));
    }
    assertEquals(3, runs.get());
    List<LockInfo.Mark> marks = client.inspect("x").marks();
    assertEquals(3, marks.size());
    marks.forEach(mark -> assertLasts(HOUR, mark));
    marks = marks.stream().filter(mark -> mark.keyBytes().length == bytes.length).toList();
    assertArrayEquals(bytes, marks.get(0).keyBytes());
    assertTrue(runs(client), "no key is another one");
  }

  @Test
  void forgottenJobRunsAgain() throws Exception {
    Redlatch client = client();
    client.onceForget("x");
    assertTrue(runs(client));
    client.onceForget("x");
    assertTrue(client.inspect("x").marks().isEmpty());
    assertTrue(client.once("x", HOUR, lease -> client.onceForget("x".getBytes(UTF_8))));
    assertTrue(runs(client), "a success after that is not remembered");
    assertFalse(runs(client));
  }

  // ---- several callers --------------------------------------------------------------------------

  /** Callers of two clients, which all wait before the first one begins. */
  private List<Worker<Boolean>> crowd(OnceAction action) throws Exception {
    List<Redlatch> clients = List.of(client(), client());
    List<Worker<Boolean>> crowd = new ArrayList<>();
    try (Lease held = clients.get(0).lock("x").with(LONG).acquire()) {
      for (int i = 0; i < CALLERS; i++) {
        Redlatch client = clients.get(i % 2);
        crowd.add(new Worker<>(() -> client.once("x", HOUR, action)));
      }
      Wait.until(() -> crowd.stream().allMatch(Worker::isParked));
      assertTrue(held.isHeld());
    }
    return crowd;
  }

  @Test
  void oneOfManyCallersRuns() throws Exception {
    int ran = 0;
    for (Worker<Boolean> one : crowd(this::work)) {
      ran += one.end() ? 1 : 0;
    }
    assertEquals(1, ran);
    assertEquals(1, runs.get());
  }

  @Test
  void manyCallersShareTheTries() throws Exception {
    Set<String> tokens = ConcurrentHashMap.newKeySet();
    OnceAction failing =
        lease -> {
          work(lease);
          tokens.add(lease.token());
          throw new IllegalStateException("of the work");
        };
    int failed = 0;
    for (Worker<Boolean> one : crowd(failing)) {
      try {
        assertFalse(one.end());
      } catch (IllegalStateException ofTheWork) {
        failed++;
      }
    }
    assertEquals(3, failed);
    assertEquals(3, runs.get());
    assertEquals(3, tokens.size(), "no run came by a local hand-off");
  }

  @Test
  void skipsAtOnceIfBusy() throws Exception {
    Redlatch client = client();
    OnceOptions options = DEFAULT.wait(HOUR).skipIfBusy(true);
    try (Lease held = client.lock("x").with(LONG).acquire()) {
      assertFalse(client.once("x", HOUR, options, this::work));
      assertFalse(client().once("x", HOUR, options, this::work));
      assertTrue(held.isHeld());
    }
    assertEquals(0, runs.get());
    assertTrue(client.once("x", HOUR, options, this::work));
    assertEquals(1, runs.get());
  }

  @Test
  void waitsForAtMostTheWait() throws Exception {
    Redlatch client = client();
    try (Lease held = client.lock("x").with(LONG).acquire()) {
      assertTimesOut(wait -> client.once("x", HOUR, DEFAULT.wait(wait), this::work));
      assertTrue(held.isHeld());
    }
    assertEquals(0, runs.get());
    assertTrue(client.once("x", HOUR, DEFAULT.wait(HOUR), this::work));
  }

  @Test
  void optionsOfTheLockAreUsed() throws Exception {
    Redlatch client = client();
    client.once(
        "x",
        HOUR,
        DEFAULT.with(LONG.maxLocalHandoffs(7).label("night")),
        lease -> assertTrue(lease.remaining().compareTo(Duration.ofMinutes(1)) > 0));
    assertEquals(
        "OnceOptions[key 'a', tries 2, wait PT1H, LockOptions[label=night]]",
        DEFAULT.key("a").tries(2).wait(HOUR).with(LockOptions.DEFAULT.label("night")).toString());
    assertEquals(
        "OnceOptions[key '', tries 3, skipped if busy, LockOptions[]]",
        DEFAULT.skipIfBusy(true).toString());
  }

  // ---- interrupts -------------------------------------------------------------------------------

  @Test
  void interruptEndsTheWait() throws Exception {
    Redlatch client = client();
    try (Lease held = client.lock("x").with(LONG).acquire()) {
      Worker<Boolean> waiter = new Worker<>(() -> runs(client));
      Wait.until(() -> waiting(client, "x") == 1);
      waiter.thread.interrupt();
      assertThrows(InterruptedException.class, waiter::end);
      Wait.until(() -> !server.hasQueue("x"));
      assertTrue(held.isHeld());
    }
    for (OnceOptions options : List.of(DEFAULT, DEFAULT.skipIfBusy(true))) {
      Thread.currentThread().interrupt();
      assertThrows(
          InterruptedException.class, () -> client.once("x", HOUR, options, this::work));
      assertFalse(Thread.interrupted(), "the exception has taken it");
    }
    assertEquals(0, runs.get());
    assertTrue(client.inspect("x").marks().isEmpty());
  }

  @Test
  void interruptOfTheWorkIsItsOwn() throws Exception {
    Redlatch client = client();
    CountDownLatch running = new CountDownLatch(1);
    Worker<Boolean> worker =
        new Worker<>(
            () ->
                client.once(
                    "x",
                    HOUR,
                    lease -> {
                      running.countDown();
                      new CountDownLatch(1).await();
                    }));
    running.await();
    worker.thread.interrupt();
    assertThrows(InterruptedException.class, worker::end);
    assertFalse(server.has("x"));
    assertFalse(mark(client).isDone());
    assertTrue(client.once("x", HOUR, lease -> Thread.currentThread().interrupt()));
    assertTrue(Thread.interrupted(), "the thread stays interrupted");
    assertTrue(mark(client).isDone());
    assertFalse(server.has("x"));
  }

  // ---- losses -----------------------------------------------------------------------------------

  @Test
  void lossIsNoSuccess() throws Exception {
    Redlatch client = client();
    OnceOptions options = DEFAULT.with(SHORT);
    OnceAction unseen = lease -> client.forceRelease("x");
    OnceAction seen =
        lease -> {
          client.forceRelease("x");
          Wait.until(() -> lease.state() == Lease.State.LOST);
        };
    for (OnceAction action : List.of(unseen, seen)) {
      LockLostException lost =
          assertThrows(LockLostException.class, () -> client.once("x", HOUR, options, action));
      assertTrue(lost.getMessage().startsWith("once"), lost::getMessage);
      assertEquals(0, lost.getSuppressed().length);
      assertFalse(mark(client).isDone());
    }
    assertTrue(runs(client));
    assertEquals(3, mark(client).tries());
  }

  @Test
  void exceptionOfTheWorkHasTheLossAsASuppressedOne() {
    Redlatch client = client();
    Exception thrown = new Exception("of the work");
    OnceAction failing =
        lease -> {
          client.forceRelease("x");
          throw thrown;
        };
    assertSame(
        thrown, assertThrows(Exception.class, () -> client.once("x", HOUR, failing)));
    assertInstanceOf(LockLostException.class, thrown.getSuppressed()[0]);
    assertEquals(1, thrown.getSuppressed().length);
  }

  @Test
  void closedClientIsNoSuccess() throws Exception {
    Redlatch client = client();
    Redlatch closed = Redlatch.connect(server.url());
    assertFails(Status.E_CLOSED, () -> closed.once("x", HOUR, lease -> closed.close()));
    assertFails(Status.E_NOT_HELD, () -> client.once("x", HOUR, Lease::close));
    assertFalse(mark(client).isDone());
    assertTrue(runs(client));
  }

  /** The release is repeated in the background, and notes the success there. */
  @Test
  void missingAnswerDoesNotFailTheWork() throws Exception {
    Redlatch client = client(ClientOptions.DEFAULT.with("command_timeout", "3s"));
    List<String> warnings = new CopyOnWriteArrayList<>();
    Logger logger = Logger.getLogger("io.redlatch");
    logger.setFilter(record -> !warnings.add(record.getMessage()));
    assertTrue(client.once("x", HOUR, lease -> server.pause()));
    logger.setFilter(null);
    server.resume();
    assertEquals(List.of("a job has succeeded, and may run again in its period"), warnings);
    Redlatch other = client();
    Wait.until(() -> !server.has("x"));
    assertTrue(mark(other).isDone());
  }

  // ---- wrong arguments --------------------------------------------------------------------------

  @Test
  void wrongArgumentsAreRefused() throws Exception {
    Redlatch client = client();
    LockOptions hash = LockOptions.DEFAULT.format(LockOptions.Format.HASH);
    for (OnceOptions options :
        List.of(
            DEFAULT.tries(0),
            DEFAULT.tries(1001),
            DEFAULT.key("x".repeat(257)),
            DEFAULT.with(hash),
            DEFAULT.with(LockOptions.DEFAULT.ttl(Duration.ofMillis(1))))) {
      assertFails(Status.E_INVALID, () -> client.once("x", HOUR, options, this::work));
    }
    for (Duration every : List.of(Duration.ofMillis(99), HOUR.negated(), Duration.ofDays(367))) {
      assertFails(Status.E_INVALID, () -> client.once("x", every, this::work));
    }
    assertFails(Status.E_INVALID, () -> DEFAULT.wait(Duration.ofMillis(-1)));
    assertFails(Status.E_INVALID, () -> client.onceForget(""));
    assertEquals(0, runs.get());
    assertFalse(server.has("x"));
  }
}

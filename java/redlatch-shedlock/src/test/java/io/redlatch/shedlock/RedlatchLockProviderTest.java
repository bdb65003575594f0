// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch.shedlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.ClientOptions;
import io.redlatch.LockLostException;
import io.redlatch.RedlatchException;
import io.redlatch.Redlock;
import io.redlatch.Status;
import io.redlatch.TestServer;
import io.redlatch.Wait;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.logging.LogRecord;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.support.LockException;
import org.junit.jupiter.api.Test;

/** What ShedLock expects of a provider, and what ours promises beyond it. */
class RedlatchLockProviderTest extends NodesTest {
  private static final Duration SOME = Duration.ofMillis(300);

  /** In which something else can be done first, also on a machine that is busy. */
  private static final Duration SECOND = Duration.ofSeconds(1);

  private SimpleLock lock(String name, Duration atMost, Duration atLeast) {
    return node.lock(task(name, atMost, atLeast)).orElseThrow();
  }

  private SimpleLock lock(Duration atMost, Duration atLeast) {
    return lock("x", atMost, atLeast);
  }

  private static void assertInvalid(SimpleLock lock) {
    assertThrows(IllegalStateException.class, lock::unlock);
    assertThrows(IllegalStateException.class, () -> lock.extend(LONG, Duration.ZERO));
  }

  // ---- lock and unlock --------------------------------------------------------------------------

  @Test
  void onlyOneNodeHasTheLock() {
    for (int i = 0; i < 10; i++) {
      SimpleLock lock = lock(LONG, Duration.ZERO);
      assertTrue(server.has("x"));
      assertFalse(gets(node, "x"));
      assertFalse(gets(other, "x"));
      assertTrue(gets(other, "y"));
      lock.unlock();
      assertFalse(server.has("x"));
      assertInvalid(lock);
    }
    assertTrue(gets(other, "x"));
    assertNothingLogged();
  }

  @Test
  void lockIsFreeAfterLockAtMostFor() {
    long began = System.nanoTime();
    lock(SOME, Duration.ZERO);
    Wait.until(() -> gets(other, "x"));
    // By the local clock, drift taken off.
    assertTook(SOME.minusMillis(50), began);
  }

  @Test
  void lostLockDoesNotFailItsTask() {
    taskLosesItsLock(Duration.ZERO);
    taskLosesItsLock(LONG);
  }

  private void taskLosesItsLock(Duration atLeast) {
    SimpleLock lock = lock(LONG, atLeast);
    otherClient.forceRelease("x");
    SimpleLock taken = other.lock(task("x")).orElseThrow();
    lock.unlock();
    LogRecord record = logged.remove();
    assertEquals("a task of ShedLock went on without its lock", record.getMessage());
    assertInstanceOf(LockLostException.class, record.getThrown());
    assertFalse(gets(node, "x"));
    taken.unlock();
  }

  @Test
  void closedClientDoesNotFailItsTask() {
    SimpleLock lock = lock(LONG, Duration.ZERO);
    SimpleLock keeping = lock("y", LONG, LONG);
    client.close();
    assertTrue(gets(other, "x"));
    assertTrue(gets(other, "y"));
    lock.unlock();
    keeping.unlock();
    String message = "the client of a task of ShedLock was closed, and its lock released";
    assertEquals(List.of(message, message), logged.stream().map(LogRecord::getMessage).toList());
  }

  @Test
  void invalidConfigurationIsRefusedWithTheReason() {
    for (LockConfiguration wrong :
        List.of(
            task("x", Duration.ofMillis(9), Duration.ZERO),
            task("x", Duration.ofDays(8), Duration.ZERO),
            task("x".repeat(1025)))) {
      LockException failure = assertThrows(LockException.class, () -> node.lock(wrong));
      RedlatchException cause = assertInstanceOf(RedlatchException.class, failure.getCause());
      assertEquals(Status.E_INVALID, cause.status());
      assertEquals(cause.getMessage(), failure.getMessage());
    }
  }

  // ---- lockAtLeastFor ---------------------------------------------------------------------------

  @Test
  void lockIsKeptForLockAtLeastFor() {
    long began = System.nanoTime();
    lock(LONG, SOME).unlock();
    Wait.until(() -> gets(other, "x"));
    assertTook(SOME, began);
    // One that is over when the task ends keeps nothing.
    long second = System.nanoTime();
    SimpleLock lock = lock(LONG, Duration.ofMillis(20));
    Wait.until(() -> System.nanoTime() - second > SOME.toNanos());
    lock.unlock();
    assertFalse(server.has("x"));
    assertNothingLogged();
  }

  @Test
  void lockIsKeptForLockAtLeastForAfterTheClientIsClosed() {
    lock(LONG, LONG).unlock();
    client.close();
    assertFalse(gets(other, "x"));
  }

  @Test
  void lockThatEndedBeforeLockAtLeastForIsNotReleased() {
    lock(LONG, SECOND).unlock();
    lock("y", LONG, SECOND).unlock();
    otherClient.forceRelease("x");
    SimpleLock taken = other.lock(task("x")).orElseThrow();
    // The second one has come to its end after the first.
    Wait.until(() -> !server.has("y"));
    assertTrue(server.has("x"));
    assertNothingLogged();
    taken.unlock();
  }

  // ---- extend -----------------------------------------------------------------------------------

  @Test
  void extendReplacesTheLockByALongerOne() {
    long began = System.nanoTime();
    SimpleLock lock = lock(SECOND, Duration.ZERO);
    SimpleLock longer = lock.extend(LONG, Duration.ZERO).orElseThrow();
    assertInvalid(lock);
    Wait.until(() -> System.nanoTime() - began > SECOND.toNanos());
    assertFalse(gets(other, "x"));
    longer.unlock();
    assertFalse(server.has("x"));
  }

  @Test
  void lostLockIsNotExtended() {
    SimpleLock forced = lock(LONG, Duration.ZERO);
    otherClient.forceRelease("x");
    assertEquals(Optional.empty(), forced.extend(LONG, Duration.ZERO));
    SimpleLock expired = lock(SOME, Duration.ZERO);
    Wait.until(() -> !server.has("x"));
    assertEquals(Optional.empty(), expired.extend(LONG, Duration.ZERO));
    assertFalse(server.has("x"));
    assertInvalid(expired);
  }

  @Test
  void extendAlsoSetsLockAtLeastFor() {
    SimpleLock lock = lock(LONG, Duration.ZERO);
    long began = System.nanoTime();
    lock.extend(LONG, SOME).orElseThrow().unlock();
    Wait.until(() -> gets(other, "x"));
    assertTook(SOME, began);
  }

  /** The server would keep it for longer, so that the client gives it back. */
  @Test
  void extendMayShortenTheLock() {
    SimpleLock lock = lock(LONG, Duration.ZERO);
    long began = System.nanoTime();
    lock.extend(SOME, Duration.ZERO).orElseThrow();
    Wait.until(() -> gets(other, "x"));
    assertTook(SOME.minusMillis(50), began);
  }

  // ---- several servers --------------------------------------------------------------------------

  @Test
  void redlockNeedsAMajorityOfItsServers() {
    try (TestServer second = new TestServer();
        TestServer third = new TestServer();
        Redlock redlock =
            Redlock.connect(
                List.of(server.url(), second.url(), third.url()),
                ClientOptions.DEFAULT.with("restart_guard", "off").with("node_timeout", "5s"),
                LONG)) {
      RedlatchLockProvider most = new RedlatchLockProvider(redlock);
      third.kill();
      SimpleLock lock = most.lock(task("x")).orElseThrow();
      assertFalse(gets(most, "x"));
      lock.unlock();
      long began = System.nanoTime();
      most.lock(task("x", LONG, SOME)).orElseThrow().unlock();
      Wait.until(() -> gets(most, "x"));
      assertTook(SOME, began);
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.Wait.Worker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

class SemaphoreTest extends ServerTest {
  private static final int CALLERS = 64;

  private static final byte[] NAME = "x".getBytes(UTF_8);

  /** Nothing of it is left: no permits, and no waiter. */
  private void awaitNothing() {
    Wait.until(() -> !server.has("x") && !server.has("{x}:rl1:sq"));
  }

  private static void awaitWaiting(NamedSemaphore semaphore, long count) {
    Wait.until(() -> semaphore.stats().waiting() == count);
  }

  @Test
  void permitsAreOutUpToTheLimit() throws Exception {
    NamedSemaphore mine = client().semaphore("x", 3);
    NamedSemaphore other = client().semaphore(NAME, 3);
    assertEquals("x", mine.name());
    assertEquals(3, mine.limit());
    assertEquals(3, mine.availablePermits());
    Lease two = mine.acquire(2);
    Lease one = other.tryAcquire().orElseThrow();
    assertEquals(2, two.permits());
    assertEquals(1, one.permits());
    assertFalse(one.token().equals(two.token()));
    assertTrue(one.fence() > two.fence());
    assertTrue(mine.tryAcquire().isEmpty(), "a thread that holds permits needs others");
    assertEquals(0, other.availablePermits());
    assertEquals(new SemaphoreStats(3, 3, OptionalLong.empty(), 0), mine.stats());
    two.close();
    assertTrue(one.isHeld());
    assertEquals(2, other.availablePermits());
    assertTrue(one.release());
    awaitNothing();
    try (Lease lock = client().lock("x").acquire()) {
      assertEquals(1, lock.permits());
      assertTrue(mine.tryAcquire().isEmpty(), "it is a lock of another kind");
    }
  }

  @Test
  void triesHaveTheWaitsOfJavaUtilConcurrent() throws Exception {
    NamedSemaphore semaphore = client().semaphore("x", 3);
    for (long time : new long[] {Long.MAX_VALUE, 0, -1, Long.MIN_VALUE}) {
      semaphore.tryAcquire(time, TimeUnit.DAYS).orElseThrow().close();
      semaphore.tryAcquire(2, time, TimeUnit.NANOSECONDS).orElseThrow().close();
    }
    try (Lease held = semaphore.with(LONG).acquire(2, Duration.ofMinutes(1))) {
      assertTrue(semaphore.tryAcquire(2, 0, TimeUnit.DAYS).isEmpty());
      assertTrue(semaphore.tryAcquire(2, Long.MIN_VALUE, TimeUnit.DAYS).isEmpty());
      assertTrue(semaphore.tryAcquire(2, Duration.ZERO).isEmpty());
      assertTrue(semaphore.tryAcquire(2).isEmpty());
      assertTimesOut(wait -> semaphore.acquire(2, wait));
      awaitWaiting(semaphore, 0);
      semaphore.tryAcquire(Duration.ZERO).orElseThrow().close();
      semaphore.acquire(Duration.ZERO).close();
      assertTrue(held.isHeld());
    }
    awaitNothing();
  }

  @Test
  void smallRequestDoesNotOvertakeABigOne() throws Exception {
    NamedSemaphore semaphore = client().semaphore("x", 3).with(LONG);
    Lease one = semaphore.acquire();
    Lease two = semaphore.acquire(2);
    Worker<Lease> big = new Worker<>(() -> semaphore.acquire(2));
    awaitWaiting(semaphore, 1);
    Worker<Lease> small = new Worker<>(semaphore::acquire);
    awaitWaiting(semaphore, 2);
    one.close();
    assertTrue(semaphore.tryAcquire().isEmpty(), "one permit is free, and others wait");
    assertTrue(big.isWaiting() && small.isWaiting());
    two.close();
    assertEquals(2, big.end().permits());
    assertEquals(1, small.end().permits());
  }

  /** Threads and futures, each several times. */
  @Test
  void callersAreNeverMoreThanTheLimit() throws Exception {
    int limit = 3;
    AtomicInteger inside = new AtomicInteger();
    AtomicInteger most = new AtomicInteger();
    List<Redlatch> clients = List.of(client(), client());
    Callable<Integer> work =
        () -> {
          most.accumulateAndGet(inside.incrementAndGet(), Math::max);
          Thread.yield();
          return inside.decrementAndGet();
        };
    List<Worker<?>> callers = new ArrayList<>();
    for (int i = 0; i < CALLERS; i++) {
      NamedSemaphore semaphore = clients.get(i % 2).semaphore("x", limit);
      boolean isAsynchronous = i % 4 >= 2;
      callers.add(
          Worker.doing(
              () -> {
                for (int turn = 0; turn < 5; turn++) {
                  if (isAsynchronous) {
                    try (Lease lease = Wait.get(semaphore.acquireAsync())) {
                      work.call();
                      lease.checkHeld();
                    }
                  } else {
                    semaphore.call(work);
                  }
                }
              }));
    }
    for (Worker<?> caller : callers) {
      caller.end();
    }
    assertTrue(most.get() <= limit, () -> most.get() + " were inside");
    awaitNothing();
  }

  @Test
  void interruptLeavesTheQueue() throws Exception {
    NamedSemaphore semaphore = client().semaphore("x", 2).with(LONG);
    try (Lease held = semaphore.acquire(2)) {
      for (Callable<?> call :
          List.<Callable<?>>of(
              semaphore::acquire,
              () -> semaphore.acquire(2),
              () -> semaphore.acquire(2, Duration.ofHours(1)),
              () -> semaphore.tryAcquire(2, 1, TimeUnit.HOURS))) {
        Worker<?> waiter = new Worker<>(call);
        awaitWaiting(semaphore, 1);
        waiter.thread.interrupt();
        assertThrows(InterruptedException.class, waiter::end);
        awaitWaiting(semaphore, 0);
      }
      Thread.currentThread().interrupt();
      assertThrows(InterruptedException.class, semaphore::acquire);
      assertTrue(held.isHeld());
    }
    awaitNothing();
  }

  @Test
  void cancelLeavesTheQueue() throws Exception {
    NamedSemaphore semaphore = client().semaphore("x", 2).with(LONG);
    Duration hour = Duration.ofHours(1);
    try (Lease held = Wait.get(semaphore.acquireAsync(2))) {
      for (CompletableFuture<Lease> future :
          List.of(
              semaphore.acquireAsync(),
              semaphore.acquireAsync(hour),
              semaphore.acquireAsync(2, hour, Runnable::run))) {
        assertTrue(future.cancel(true));
      }
      awaitWaiting(semaphore, 0);
      CompletableFuture<Lease> busy = semaphore.acquireAsync(2, Duration.ZERO);
      Throwable cause = assertThrows(ExecutionException.class, () -> Wait.get(busy)).getCause();
      assertEquals(Status.BUSY, assertInstanceOf(NotAcquiredException.class, cause).status());
      assertEquals(2, held.permits());
    }
    awaitNothing();
  }

  /** A grant and a cancel cross: then the permits are free again. */
  @Test
  void grantsThatCrossACancelAreReleased() throws Exception {
    NamedSemaphore semaphore = client().semaphore("x", 2);
    for (int i = 0; i < 200; i++) {
      Lease held = semaphore.acquire(2);
      CompletableFuture<Lease> future = semaphore.acquireAsync(2);
      Worker<?> cancelling = Worker.doing(() -> future.cancel(true));
      held.close();
      cancelling.end();
      if (!future.isCancelled()) {
        future.join().close();
      }
      semaphore.acquire(2, Duration.ofSeconds(Wait.PATIENCE_S)).close();
    }
    awaitNothing();
  }

  @Test
  void closedClientHasNoPermits() throws Exception {
    Redlatch client = client();
    NamedSemaphore semaphore = client.semaphore("x", 1).with(LONG);
    Lease held = semaphore.acquire();
    Worker<?> waiter = new Worker<>(semaphore::acquire);
    CompletableFuture<Lease> future = semaphore.acquireAsync();
    awaitWaiting(semaphore, 2);
    client.close();
    assertFails(Status.E_CLOSED, waiter::end);
    assertThrows(ExecutionException.class, () -> Wait.get(future));
    assertFails(Status.E_CLOSED, semaphore::acquire);
    assertFails(Status.E_CLOSED, semaphore::tryAcquire);
    assertFails(Status.E_CLOSED, semaphore::stats);
    assertFails(Status.E_CLOSED, semaphore::availablePermits);
    assertEquals(Lease.State.RELEASED, held.state());
    awaitNothing();
  }

  @Test
  void badArgumentsAreRefused() {
    Redlatch client = client();
    NamedSemaphore three = client.semaphore("x", 3);
    LockOptions options = LockOptions.DEFAULT;
    Map<String, Executable> wrong =
        Map.of(
            "option 'permits' must be 1 to 1000000 (got '0')", () -> three.tryAcquire(0),
            "option 'permits' must be 1 to 1000000 (got '-1')", () -> three.acquire(-1),
            "(got 4)", () -> three.acquire(4),
            "option 'limit' must be 1 to 1000000 (got '0')", () -> client.semaphore("x", 0),
            "option 'limit' must be 1 to 1000000 (got '-1')", () -> client.semaphore("x", -1),
            "(got '1000001')", () -> client.semaphore("x", 1000001),
            "name must be 1 to 1024 bytes", client.semaphore("", 3)::acquire,
            "owner", three.with(options.owner("me"))::acquire,
            "reentrant", three.with(options.reentrant(true))::acquire,
            "format", three.with(options.format(LockOptions.Format.HASH))::acquire);
    wrong.forEach(
        (text, call) -> {
          String said = assertFails(Status.E_INVALID, call).getMessage();
          assertTrue(said.contains(text), () -> said + ", and not " + text);
        });
    assertFails(Status.E_INVALID, () -> three.acquire(Duration.ofMillis(-1)));
    assertFails(Status.E_INVALID, client.semaphore("", 3)::stats);
    assertFails(Status.E_INVALID, () -> three.attach(0, "token"));
    assertFails(Status.E_INVALID, () -> options.with("permits", "2"));
    awaitNothing();
  }

  @Test
  void leaseIsNoReadersAndNoWriters() throws Exception {
    try (Lease lease = client().semaphore("x", 3).acquire(3)) {
      assertEquals(Lease.Mode.WRITE, lease.mode());
      assertFails(Status.E_INVALID, lease::tryUpgrade);
      assertFails(Status.E_INVALID, lease::downgrade);
      assertTrue(lease.isHeld());
    }
  }

  /** The lease of another holder stays. */
  @Test
  void leasesAreLostAndExtendedAlone() throws Exception {
    Redlatch client = client();
    NamedSemaphore semaphore = client.semaphore("x", 3);
    Lease lost = semaphore.with(SHORT).acquire(2);
    Lease kept = semaphore.with(SHORT).acquire();
    CompletableFuture<LockLostException> told = lost.lost();
    client.forceRelease(NAME, lost.token().getBytes(UTF_8));
    assertEquals(Status.E_LOST, Wait.get(told).status());
    assertThrows(LockLostException.class, lost::close);
    kept.extend(Duration.ofMinutes(10));
    assertTrue(kept.remaining().compareTo(Duration.ofMinutes(9)) > 0);
    assertEquals(2, semaphore.availablePermits());
    client.forceRelease("x");
    assertThrows(LockLostException.class, kept::release);
    assertThrows(
        LockLostException.class,
        () ->
            semaphore.call(
                () -> {
                  client.forceRelease("x");
                  return 1;
                }));
  }

  @Test
  void leaseMovesWithItsPermits() throws Exception {
    NamedSemaphore mine = client().semaphore("x", 3).with(LONG);
    NamedSemaphore other = client().semaphore("x", 3).with(LONG);
    Lease lease = mine.acquire(2);
    long fence = lease.fence();
    String token = lease.detach();
    assertFails(Status.E_NOT_HELD, () -> other.attach(1, token));
    Lease attached = other.attach(2, token, fence);
    assertEquals(2, attached.permits());
    assertEquals(fence, attached.fence());
    assertEquals(1, mine.availablePermits());
    assertEquals(2, other.attach(2, attached.detach()).permits());
  }

  @Test
  void capCountsForAllCallers() throws Exception {
    Redlatch client = client();
    NamedSemaphore semaphore = client.semaphore("x", 3).with(LONG);
    Lease two = semaphore.acquire(2);
    server.ask("SET", "{x}:rl1:sc", "1", "PX", "600000");
    assertEquals(new SemaphoreStats(2, 1, OptionalLong.of(1), 0), semaphore.stats());
    assertEquals(0, semaphore.availablePermits(), "not below 0");
    assertTrue(semaphore.tryAcquire().isEmpty());
    assertTrue(two.isHeld());
    two.close();
    assertEquals(1, semaphore.availablePermits());
    server.ask("SET", "{x}:rl1:sc", "7", "PX", "600000");
    assertEquals(new SemaphoreStats(0, 3, OptionalLong.of(7), 0), semaphore.stats());
  }

  @Test
  void inspectionShowsPermits() throws Exception {
    Redlatch client = client();
    NamedSemaphore semaphore = client.semaphore("x", 5);
    Lease two = semaphore.acquire(2);
    Lease one = semaphore.acquire();
    LockInfo info = client.inspect("x");
    assertEquals(3, info.used());
    assertEquals(5, info.limit());
    assertEquals(2, info.holding());
    for (LockInfo.Holder holder : info.holders()) {
      assertEquals(holder.token().equals(two.token()) ? 2 : 1, holder.permits());
    }
    assertTrue(one.isHeld());
    assertEquals("NamedSemaphore[x, limit 5]", semaphore.toString());
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.Wait.Worker;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.Test;

/** An interrupt ends a wait at once, and leaves nothing behind. */
class InterruptTest extends ServerTest {
  private static void assertInterrupted(Worker<?> worker) {
    worker.thread.interrupt();
    assertThrows(InterruptedException.class, worker::end);
  }

  @Test
  void interruptLeavesTheQueue() throws Exception {
    Redlatch client = client();
    Redlatch other = client();
    try (Lease held = client.lock("x").with(LONG).acquire()) {
      Worker<Lease> waiter = new Worker<>(() -> other.lock("x").acquire());
      Wait.until(() -> waiting(client, "x") == 1);
      assertInterrupted(waiter);
      Wait.until(() -> !server.hasQueue("x"));
      Worker<?> limited = new Worker<>(() -> other.lock("x").acquire(Duration.ofHours(1)));
      Wait.until(() -> waiting(client, "x") == 1);
      assertInterrupted(limited);
      assertTrue(held.isHeld());
    }
    Wait.until(() -> !server.hasQueue("x"));
    other.lock("x").tryAcquire().orElseThrow().close();
  }

  @Test
  void interruptedThreadDoesNotBeginToAcquire() {
    Redlatch client = client();
    List<Callable<?>> calls =
        List.of(
            () -> client.lock("x").acquire(),
            () -> client.lock("x").acquire(Duration.ofSeconds(1)),
            () -> client.lock("x").tryAcquire(Duration.ZERO),
            () -> client.lock("x").call(() -> 1));
    for (Callable<?> call : calls) {
      Thread.currentThread().interrupt();
      assertThrows(InterruptedException.class, call::call);
      assertFalse(Thread.interrupted(), "the exception has taken it");
    }
    assertFalse(server.has("x"));
  }

  @Test
  void callsThatDoNotWaitSucceedAndKeepTheInterrupt() throws Exception {
    Redlatch client = client();
    Thread.currentThread().interrupt();
    Lease lease = client.lock("x").tryAcquire().orElseThrow();
    lease.extend(Duration.ofMinutes(1));
    client.inspect("x");
    lease.close();
    assertTrue(Thread.interrupted());
    assertFalse(server.has("x"));
    Thread.currentThread().interrupt();
    // With a server that is late: the release is waited for.
    Lease late = client.lock("x").tryAcquire().orElseThrow();
    Thread.interrupted();
    server.pause();
    Worker<Boolean> closing =
        new Worker<>(
            () -> {
              late.close();
              return Thread.interrupted();
            });
    Wait.until(() -> closing.isParked());
    closing.thread.interrupt();
    server.resume();
    assertTrue(closing.end());
    Wait.until(() -> !server.has("x"));
  }

  @Test
  void interruptEndsConnect() throws Exception {
    Redlatch client = closing(Redlatch.open("unix:///nowhere"));
    Worker<Boolean> connecting =
        new Worker<>(
            () -> {
              assertFails(Status.CANCELLED, () -> client.connect(Duration.ofHours(1)));
              return Thread.interrupted();
            });
    Wait.until(() -> connecting.isParked());
    connecting.thread.interrupt();
    assertTrue(connecting.end(), "the thread stays interrupted");
  }

  @Test
  void interruptedThreadDoesNotConnect() throws Exception {
    Redlatch client = client();
    for (int i = 0; i < 20; i++) {
      Thread.currentThread().interrupt();
      assertFails(Status.CANCELLED, () -> client.connect(Duration.ZERO));
      assertTrue(Thread.interrupted(), "the thread stays interrupted");
    }
  }

  /** A grant and an interrupt cross: who waits has the lease, or nobody has the lock. */
  @Test
  void grantsThatCrossAnInterruptAreNotLost() throws Exception {
    Redlatch client = client();
    Redlatch other = client();
    for (int i = 0; i < 200; i++) {
      Lease held = client.lock("x").acquire();
      Worker<Lease> waiter = new Worker<>(() -> other.lock("x").acquire());
      Wait.until(() -> waiter.isParked());
      Thread interrupter = new Thread(waiter.thread::interrupt);
      interrupter.start();
      held.close();
      interrupter.join();
      try {
        waiter.end().close();
      } catch (InterruptedException crossed) {
        assertFalse(waiter.isWaiting());
      }
      client.lock("x").acquire(Duration.ofSeconds(Wait.PATIENCE_S)).close();
    }
    Wait.until(() -> !server.has("x") && !server.hasQueue("x"));
  }
}

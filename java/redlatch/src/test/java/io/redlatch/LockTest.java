// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.Wait.Worker;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class LockTest extends ServerTest {
  @Test
  void leaseDescribesItself() throws Exception {
    Lease held = client().lock("report").acquire();
    assertEquals("report", held.name());
    assertEquals(1, held.holdCount());
    assertEquals("Lease[report, HELD, fence " + held.fence() + "]", held.toString());
    held.close();
  }

  @Test
  void waitIsLimited() throws Exception {
    Redlatch client = client();
    try (Lease held = client.lock("x").acquire()) {
      NamedLock lock = client.lock("x");
      NotAcquiredException failure = assertTimesOut(wait -> lock.acquire(wait).close());
      assertTrue(failure.getMessage().startsWith("acquire: lock 'x' "), failure::getMessage);
      assertEquals(Optional.empty(), lock.tryAcquire(Duration.ofSeconds(1)));
      assertFails(Status.BUSY, () -> lock.acquire(Duration.ZERO).close());
      assertEquals(Optional.empty(), lock.tryAcquire(Duration.ZERO));
      assertTrue(held.isHeld());
    }
  }

  private static Duration max() {
    return ChronoUnit.FOREVER.getDuration();
  }

  @Test
  void waitMayBeTheLongestDuration() throws Exception {
    Redlatch client = client();
    Worker<Optional<Lease>> waiter;
    try (Lease held = client.lock("x").acquire(max())) {
      waiter = new Worker<>(() -> client.lock("x").tryAcquire(max()));
      Wait.until(() -> waiting(client, "x") == 1);
      assertTrue(held.isHeld() && waiter.isWaiting());
    }
    waiter.end().orElseThrow().close();
  }

  @Test
  void leaseMayBeReleasedByAnyThread() throws Exception {
    Redlatch client = client();
    Lease lease = client.lock("x").acquire();
    assertTrue(Wait.inThread(lease::release));
    assertFalse(server.has("x"));
  }

  @Test
  void callHoldsTheLockDuringTheWork() throws Exception {
    Redlatch client = client();
    assertEquals(7, client.lock("x").call(() -> server.has("x") ? 7 : 0));
    assertFalse(server.has("x"));
    Exception thrown = new Exception("of the work");
    Exception caught =
        assertThrows(
            Exception.class,
            () ->
                client
                    .lock("x")
                    .call(
                        () -> {
                          throw thrown;
                        }));
    assertSame(thrown, caught);
    assertFalse(server.has("x"));
  }
}

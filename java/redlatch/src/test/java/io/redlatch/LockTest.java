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
  void lockExcludesUntilItIsReleased() throws Exception {
    Redlatch one = client();
    Redlatch other = client();
    Lease held = one.lock("report").acquire();
    assertTrue(held.isHeld());
    held.checkHeld();
    assertEquals(Lease.State.HELD, held.state());
    assertEquals(Lease.Mode.WRITE, held.mode());
    assertEquals("report", held.name());
    assertEquals(1, held.holdCount());
    assertEquals(32, held.token().length());
    assertTrue(held.fence() > 0);
    assertTrue(held.remaining().compareTo(Duration.ofSeconds(20)) > 0, held::toString);
    assertEquals("Lease[report, HELD, fence " + held.fence() + "]", held.toString());

    assertEquals(Optional.empty(), other.lock("report").tryAcquire());
    assertTrue(held.release());
    assertFalse(held.isHeld());
    assertEquals(Lease.State.RELEASED, held.state());
    assertEquals(Duration.ZERO, held.remaining());
    try (Lease next = other.lock("report").tryAcquire().orElseThrow()) {
      assertTrue(next.fence() > held.fence());
    }
    assertFalse(server.has("report"));
    assertFails(Status.E_NOT_HELD, held::release);
    assertFails(Status.E_NOT_HELD, held::checkHeld);
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
      assertFalse(server.hasQueue("x"), "nobody is left in line");
      assertTrue(held.isHeld());
    }
  }

  @Test
  void waitOfNoneIsOneTry() throws Exception {
    Redlatch client = client();
    try (Lease held = client.lock("x").acquire()) {
      NamedLock lock = client.lock("x");
      NotAcquiredException failure =
          assertThrows(NotAcquiredException.class, () -> lock.acquire(Duration.ZERO).close());
      assertEquals(Status.BUSY, failure.status());
      assertEquals(Optional.empty(), lock.tryAcquire(Duration.ZERO));
      assertTrue(held.isHeld());
    }
  }

  private static Duration max() {
    return ChronoUnit.FOREVER.getDuration();
  }

  @Test
  void waitMayBeAsLongAsADuration() throws Exception {
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
  void leaseIsClosedByAnyThread() throws Exception {
    Redlatch client = client();
    Lease lease = client.lock("x").acquire();
    assertTrue(Wait.inThread(lease::release));
    assertFalse(server.has("x"));
  }

  @Test
  void callHoldsTheLockMeanwhile() throws Exception {
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

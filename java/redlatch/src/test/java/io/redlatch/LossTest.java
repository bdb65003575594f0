// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class LossTest extends ServerTest {
  private Lease lost(Redlatch client) throws Exception {
    Lease lease = client.lock("x").with(SHORT).acquire();
    client.forceRelease("x");
    Wait.until(() -> lease.state() == Lease.State.LOST);
    return lease;
  }

  @Test
  void lossNotifiesAllActionsAndFutures() throws Exception {
    Redlatch client = client();
    Lease lease = client.lock("x").with(SHORT).acquire();
    AtomicInteger told = new AtomicInteger();
    lease.onLost(told::incrementAndGet);
    lease.onLost(told::incrementAndGet, Runnable::run);
    CompletableFuture<LockLostException> reason = lease.lost();
    CompletableFuture<LockLostException> cancelled = lease.lost();
    assertTrue(cancelled.cancel(true));
    client.forceRelease("x");
    assertEquals(Status.E_LOST, Wait.get(reason).status());
    Wait.until(() -> told.get() == 2);
    lease.onLost(told::incrementAndGet);
    Wait.until(() -> told.get() == 3);
    String message = Wait.get(lease.lost()).getMessage();
    assertTrue(message.startsWith("check: lock 'x' was lost: "), message);
  }

  @Test
  void exceptionOfAnActionGoesToTheUncaughtExceptionHandler() throws Exception {
    Redlatch client = client();
    CompletableFuture<Throwable> told = new CompletableFuture<>();
    Executor executor =
        work -> {
          Thread thread = new Thread(work);
          thread.setUncaughtExceptionHandler((where, failure) -> told.complete(failure));
          thread.start();
        };
    RuntimeException thrown = new RuntimeException("of the action");
    lost(client)
        .onLost(
            () -> {
              throw thrown;
            },
            executor);
    assertSame(thrown, Wait.get(told));
  }

  @Test
  void lostLeaseIsNotHeld() throws Exception {
    Redlatch client = client();
    Lease lease = lost(client);
    assertFalse(lease.isHeld());
    assertThrows(LockLostException.class, lease::checkHeld);
    assertThrows(LockLostException.class, lease::close);
    lease.close();
  }

  @Test
  void lossIsSuppressedOnTheExceptionOfTheWork() {
    Redlatch client = client();
    Exception thrown = new Exception("of the work");
    Exception caught =
        assertThrows(
            Exception.class,
            () -> {
              try (Lease lease = lost(client)) {
                assertFalse(lease.isHeld());
                throw thrown;
              }
            });
    assertSame(thrown, caught);
    assertInstanceOf(LockLostException.class, caught.getSuppressed()[0]);
    assertEquals(1, caught.getSuppressed().length);
  }

  @Test
  void callFailsIfTheLockIsLostDuringTheWork() {
    Redlatch client = client();
    NamedLock lock = client.lock("x").with(SHORT);
    assertThrows(
        LockLostException.class,
        () ->
            lock.call(
                () -> {
                  client.forceRelease("x");
                  return 1;
                }));
    // The work had done its own before.
    Exception caught =
        assertThrows(
            IllegalStateException.class,
            () ->
                lock.call(
                    () -> {
                      client.forceRelease("x");
                      throw new IllegalStateException("of the work");
                    }));
    assertInstanceOf(LockLostException.class, caught.getSuppressed()[0]);
  }

  @Test
  void releasedAndDetachedLeasesAreNotLost() throws Exception {
    Redlatch client = client();
    Lease released = client.lock("x").acquire();
    Lease detached = client.lock("y").acquire();
    AtomicInteger told = new AtomicInteger();
    CompletableFuture<?> one = released.lost();
    CompletableFuture<?> two = detached.lost();
    released.onLost(told::incrementAndGet);
    released.close();
    detached.detach();
    released.onLost(told::incrementAndGet);
    CompletableFuture<?> late = released.lost();
    // A loss later than those would be told later.
    Lease lost = client.lock("z").with(SHORT).acquire();
    CompletableFuture<?> last = lost.lost();
    client.forceRelease("z");
    Wait.get(last);
    assertFalse(one.isDone() || two.isDone() || late.isDone());
    assertEquals(0, told.get());
  }

  /** What is told may not keep others waiting. */
  @Test
  void dependentOfALossMayBlock() throws Exception {
    Redlatch client = client();
    Lease lease = client.lock("x").with(SHORT).acquire();
    CompletableFuture<Boolean> waited = new CompletableFuture<>();
    lease.lost().thenRun(() -> waited.complete(client.lock("x").acquireAsync().join().release()));
    client.forceRelease("x");
    assertTrue(Wait.get(waited));
  }
}

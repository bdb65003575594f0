// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.Wait.Worker;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;

class CloseTest extends ServerTest {
  @Test
  void closeReleasesAndEndsWaits() throws Exception {
    Redlatch client = client();
    Redlatch other = client();
    Lease held = client.lock("x").acquire();
    try (Lease elsewhere = other.lock("y").with(LONG).acquire()) {
      Worker<Lease> waiter = new Worker<>(() -> client.lock("y").acquire());
      CompletableFuture<Lease> future = client.lock("y").acquireAsync();
      Wait.until(() -> waiting(other, "y") == 1);
      Wait.until(() -> waiter.isParked());
      client.close();
      client.close();
      assertFails(Status.E_CLOSED, waiter::end);
      Throwable failure = assertThrows(CompletionException.class, future::join).getCause();
      assertEquals(Status.E_CLOSED, ((RedlatchException) failure).status());
      assertFalse(server.has("x"));
      assertEquals(Lease.State.RELEASED, held.state());
      held.close();
      assertFails(Status.E_CLOSED, () -> client.lock("z").tryAcquire());
      assertFails(Status.E_CLOSED, () -> client.inspect("z"));
      assertFails(Status.E_CLOSED, () -> client.connect(Duration.ZERO));
      assertTrue(elsewhere.isHeld());
    }
  }

  @Test
  void blockEndsTheLeaseAndThenTheClient() throws Exception {
    try (Redlatch client = Redlatch.connect(server.url());
        Lease lease = client.lock("x").acquire()) {
      assertTrue(server.has("x") && lease.isHeld());
    }
    assertFalse(server.has("x"));
  }

  @Test
  void anyOrderOfClosesWillDo() throws Exception {
    Redlatch client = client();
    Lease detached = client.lock("y").with(SHORT).acquire();
    detached.detach();
    detached.close();
    assertFails(Status.E_NOT_HELD, detached::release);
    Lease lease = client.lock("x").acquire();
    assertTrue(lease.release());
    lease.close();
    lease.close();
    Lease late = client.lock("x").acquire();
    client.close();
    late.close();
  }

  /** Of all who end a lease at the same time, each has what it wanted. */
  @Test
  void endsAtTheSameTimeAreOne() throws Exception {
    Redlatch client = client();
    for (int i = 0; i < 200; i++) {
      Lease lease = client.lock("x").acquire();
      CyclicBarrier together = new CyclicBarrier(3);
      Worker<Integer> one = new Worker<>(() -> closeAtBarrier(lease, together));
      Worker<Integer> two = new Worker<>(() -> closeAtBarrier(lease, together));
      together.await();
      try {
        lease.release();
      } catch (RedlatchException failure) {
        assertEquals(Status.E_NOT_HELD, failure.status());
      }
      one.end();
      two.end();
    }
  }

  private static int releaseAtBarrier(Lease lease, CyclicBarrier silent) throws Exception {
    silent.await();
    silent.await();
    RedlatchException failure = assertFails(Status.E_OUTCOME_UNKNOWN, lease::release);
    assertTrue(failure.status().maybeApplied());
    return 0;
  }

  private static int closeAtBarrier(Lease lease, CyclicBarrier barrier) throws Exception {
    barrier.await();
    lease.close();
    return 0;
  }

  @Test
  void closeDoesNotWaitForASilentServerForLong() throws Exception {
    Redlatch client = client();
    Lease one = client.lock("one").acquire();
    Lease two = client.lock("two").acquire();
    Lock three = client.lock("three").asLock();
    ReadWriteLock four = client.readWriteLock("four").asReadWriteLock();
    CyclicBarrier silent = new CyclicBarrier(4);
    Worker<?> telling = new Worker<>(() -> releaseAtBarrier(one, silent));
    // The work was protected.
    Worker<?> unlocking =
        new Worker<>(
            () -> {
              three.lock();
              silent.await();
              silent.await();
              three.unlock();
              return 0;
            });
    Worker<?> downgrading =
        new Worker<>(
            () -> {
              four.writeLock().lock();
              four.readLock().lock();
              silent.await();
              silent.await();
              four.writeLock().unlock();
              four.readLock().unlock();
              return 0;
            });
    List<String> warnings = new CopyOnWriteArrayList<>();
    Logger logger = Logger.getLogger("io.redlatch");
    logger.setFilter(record -> !warnings.add(record.getMessage()));
    silent.await();
    server.pause();
    silent.await();
    two.close();
    telling.end();
    unlocking.end();
    downgrading.end();
    logger.setFilter(null);
    assertEquals(Collections.nCopies(3, "a release continues in the background"), warnings);
    client.close();
    server.resume();
  }
}

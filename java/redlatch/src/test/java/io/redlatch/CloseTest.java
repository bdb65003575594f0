// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.Wait.Worker;
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
  void closingTheClientFailsWaitingFutures() throws Exception {
    Redlatch client = client();
    Redlatch other = client();
    try (Lease elsewhere = other.lock("y").with(LONG).acquire()) {
      CompletableFuture<Lease> future = client.lock("y").acquireAsync();
      Wait.until(() -> waiting(other, "y") == 1);
      client.close();
      client.close();
      Throwable failure = assertThrows(CompletionException.class, future::join).getCause();
      assertEquals(Status.E_CLOSED, ((RedlatchException) failure).status());
      assertTrue(elsewhere.isHeld());
    }
  }

  @Test
  void clientAndLeasesMayBeClosedInAnyOrder() throws Exception {
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
  void concurrentEndsOfALeaseAreSafe() throws Exception {
    Redlatch client = client();
    for (int i = 0; i < 200; i++) {
      Lease lease = client.lock("x").acquire();
      CyclicBarrier together = new CyclicBarrier(3);
      Worker<?> one = Worker.doing(() -> closeAtBarrier(lease, together));
      Worker<?> two = Worker.doing(() -> closeAtBarrier(lease, together));
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

  private static void releaseAtBarrier(Lease lease, CyclicBarrier silent) throws Exception {
    silent.await();
    silent.await();
    RedlatchException failure = assertFails(Status.E_OUTCOME_UNKNOWN, lease::release);
    assertTrue(failure.status().maybeApplied());
  }

  private static void closeAtBarrier(Lease lease, CyclicBarrier barrier) throws Exception {
    barrier.await();
    lease.close();
  }

  @Test
  void closeDoesNotWaitLongForASilentServer() throws Exception {
    Redlatch client = client();
    Lease one = client.lock("one").acquire();
    Lease two = client.lock("two").acquire();
    Lock three = client.lock("three").asLock();
    ReadWriteLock four = client.readWriteLock("four").asReadWriteLock();
    CyclicBarrier silent = new CyclicBarrier(4);
    Worker<?> telling = Worker.doing(() -> releaseAtBarrier(one, silent));
    // The work was protected.
    Worker<?> unlocking =
        Worker.doing(
            () -> {
              three.lock();
              silent.await();
              silent.await();
              three.unlock();
            });
    Worker<?> downgrading =
        Worker.doing(
            () -> {
              four.writeLock().lock();
              four.readLock().lock();
              silent.await();
              silent.await();
              four.writeLock().unlock();
              four.readLock().unlock();
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

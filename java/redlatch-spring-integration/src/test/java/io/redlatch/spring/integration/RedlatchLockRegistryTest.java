// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch.spring.integration;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.LockLostException;
import io.redlatch.NamedLock;
import io.redlatch.RedlatchException;
import io.redlatch.Status;
import io.redlatch.Wait;
import io.redlatch.Wait.Worker;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.ConcurrentModificationException;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.Lock;
import org.junit.jupiter.api.Test;

class RedlatchLockRegistryTest extends RegistriesTest {
  // ---- keys -------------------------------------------------------------------------------------

  @Test
  void locksOfOneKeyAreTheSameLock() throws Exception {
    registry.obtain("x").lock();
    assertTrue(registry.obtain("x").tryLock());
    assertTrue(registry.obtain("x").tryLock(1, TimeUnit.HOURS));
    registry.obtain("x").lockInterruptibly();
    assertEquals("Lock[x, locked by this thread]", registry.obtain("x").toString());
    for (int i = 0; i < 4; i++) {
      assertFalse(othersGet(registry, "x"));
      assertFalse(othersGet(other, "x"));
      assertFalse(other.obtain("x").tryLock());
      registry.obtain("x").unlock();
    }
    assertEquals("Lock[x]", registry.obtain("x").toString());
    assertFalse(server.has("x"));
    assertTrue(othersGet(registry, "x"));
    assertTrue(othersGet(other, "x"));
  }

  @Test
  void oneKeyAlwaysGivesTheSameObject() throws Exception {
    Lock lock = registry.obtain("x");
    assertSame(lock, registry.obtain(new String("x")));
    assertEquals(lock, registry.obtain("x"));
    assertEquals(lock.hashCode(), registry.obtain("x").hashCode());
    assertNotEquals(lock, registry.obtain("y"));
    assertNotEquals(lock, other.obtain("x"));
    lock.lock();
    assertSame(lock, registry.obtain("x"));
    assertSame(lock, Wait.inThread(() -> registry.obtain("x")));
    registry.expireUnusedOlderThan(-1000);
    assertSame(lock, registry.obtain("x"));
    lock.unlock();
    registry.expireUnusedOlderThan(-1000);
    assertSame(lock, registry.obtain("x"));
  }

  @Test
  void lockedObjectIsNotCollectedWithoutAReference() {
    registry.obtain("x").lock();
    int identity = System.identityHashCode(registry.obtain("x"));
    WeakReference<Object> collected = new WeakReference<>(new Object());
    Wait.until(
        () -> {
          System.gc();
          return collected.get() == null;
        });
    assertEquals(identity, System.identityHashCode(registry.obtain("x")));
    registry.obtain("x").unlock();
    assertFalse(server.has("x"));
  }

  @Test
  void threadsThatObtainOneKeyTogetherGetTheSameObject() throws Exception {
    for (int round = 0; round < 20; round++) {
      String key = "key" + round;
      CyclicBarrier start = new CyclicBarrier(64);
      List<Worker<Lock>> workers = new ArrayList<>();
      for (int i = 0; i < 64; i++) {
        workers.add(
            new Worker<>(
                () -> {
                  start.await();
                  return registry.obtain(key);
                }));
      }
      Set<Lock> locks = Collections.newSetFromMap(new IdentityHashMap<>());
      for (Worker<Lock> worker : workers) {
        locks.add(worker.end());
      }
      assertEquals(1, locks.size());
    }
  }

  @Test
  void badKeysAreRefused() {
    for (Object wrong : Arrays.asList(42, null, List.of("x"))) {
      IllegalArgumentException failure =
          assertThrows(IllegalArgumentException.class, () -> registry.obtain(wrong));
      assertTrue(failure.getMessage().startsWith("The key of a lock is a String"));
      assertThrows(IllegalArgumentException.class, () -> registry.renewLock(wrong));
    }
    RedlatchException failure =
        assertThrows(RedlatchException.class, () -> registry.obtain("").tryLock());
    assertEquals(Status.E_INVALID, failure.status());
  }

  // ---- nothing stays ----------------------------------------------------------------------------

  @Test
  void unlockedObjectsAreCollected() {
    List<WeakReference<NamedLock>> made = new ArrayList<>();
    RedlatchLockRegistry many =
        new RedlatchLockRegistry(
            key -> {
              NamedLock lock = client.lock(key);
              made.add(new WeakReference<>(lock));
              return lock;
            });
    many.obtain("held").lock();
    other.obtain("taken").lock();
    for (int i = 0; i < 10_000; i++) {
      Lock lock = many.obtain("key" + i);
      lock.lock();
      lock.unlock();
      assertFalse(many.obtain("taken").tryLock());
    }
    many.expireUnusedOlderThan(0);
    Wait.until(
        () -> {
          System.gc();
          many.obtain("held"); // forgets what was collected
          return made.stream().filter(one -> one.get() != null).count() <= 1
              && many.lockCount() == 1;
        });
    many.obtain("held").unlock();
    assertFalse(server.has("held"));
  }

  // ---- tasks ------------------------------------------------------------------------------------

  @Test
  void executeLockedWaitsForTheLock() throws Exception {
    int[] counter = {0};
    registry.executeLocked("x", () -> counter[0]++);
    other.obtain("x").lock();
    Duration wait = Duration.ofMillis(10);
    assertThrows(
        TimeoutException.class, () -> registry.executeLocked("x", wait, () -> counter[0]++));
    other.obtain("x").unlock();
    assertEquals(2, registry.executeLocked("x", Duration.ofHours(1), () -> counter[0] + 1));
  }

  // ---- unlocking and loss -----------------------------------------------------------------------

  @Test
  void unlockByAnotherThreadOrRegistryIsRefused() throws Exception {
    registry.obtain("x").lock();
    IllegalMonitorStateException failure =
        assertThrows(
            IllegalMonitorStateException.class, Worker.doing(registry.obtain("x")::unlock)::end);
    assertEquals(
        "You do not own lock at 'x': this thread has not locked it", failure.getMessage());
    assertThrows(IllegalMonitorStateException.class, other.obtain("x")::unlock);
    assertFalse(othersGet(other, "x"));
    registry.obtain("x").unlock();
    assertThrows(IllegalMonitorStateException.class, registry.obtain("x")::unlock);
  }

  private void lose(String key) {
    otherClient.forceRelease(key);
    // Told by its next renewal.
    Wait.until(
        () -> {
          try {
            registry.renewLock(key);
            return false;
          } catch (IllegalStateException lost) {
            assertInstanceOf(LockLostException.class, lost.getCause());
            assertTrue(lost.getMessage().startsWith("Could not renew mutex at '" + key + "': "));
            return true;
          }
        });
  }

  @Test
  void unlockAfterALossThrows() throws Exception {
    Lock lock = registry.obtain("x");
    lock.lock();
    lock.lock();
    lose("x");
    assertTrue(othersGet(other, "x"));
    assertThrows(LockLostException.class, lock::tryLock);
    lock.unlock();
    ConcurrentModificationException failure =
        assertThrows(ConcurrentModificationException.class, lock::unlock);
    assertInstanceOf(LockLostException.class, failure.getCause());
    assertEquals(
        "Lock was released in the store due to expiration. The integrity of data protected by this"
            + " lock may have been compromised. "
            + failure.getCause().getMessage(),
        failure.getMessage());
    // It is over then.
    assertThrows(IllegalMonitorStateException.class, lock::unlock);
    assertTrue(lock.tryLock());
    lock.unlock();
  }

  @Test
  void onlyTheHolderMayRenewTheLock() throws Exception {
    registry.obtain("x").lock();
    registry.renewLock("x");
    IllegalStateException failure =
        assertThrows(
            IllegalStateException.class, Worker.doing(() -> registry.renewLock("x"))::end);
    assertEquals(
        "Could not renew mutex at 'x': this thread has not locked it", failure.getMessage());
    assertNull(failure.getCause());
    // By itself.
    server.awaitRenewal("x");
    registry.expireUnusedOlderThan(0);
    registry.obtain("x").unlock();
    assertFalse(server.has("x"));
    assertThrows(IllegalStateException.class, () -> registry.renewLock("x"));
  }

  @Test
  void closingTheClientEndsTheLock() throws Exception {
    Lock lock = registry.obtain("x");
    lock.lock();
    client.close();
    assertTrue(othersGet(other, "x"));
    IllegalStateException failure =
        assertThrows(IllegalStateException.class, () -> registry.renewLock("x"));
    RedlatchException cause = assertInstanceOf(RedlatchException.class, failure.getCause());
    assertEquals(Status.E_NOT_HELD, cause.status());
    lock.unlock();
    assertThrows(IllegalMonitorStateException.class, lock::unlock);
  }

  @Test
  void conditionsAreNotSupported() {
    UnsupportedOperationException failure =
        assertThrows(UnsupportedOperationException.class, registry.obtain("x")::newCondition);
    assertTrue(failure.getMessage().startsWith("Conditions are not supported"));
  }
}

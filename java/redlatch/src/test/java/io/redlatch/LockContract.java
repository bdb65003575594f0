// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.Wait.Work;
import io.redlatch.Wait.Worker;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * What the documentation of java.util.concurrent.locks.Lock says, sentence by sentence, and where
 * it leaves a choice, what that of our views says. The name of the lock is "x".
 */
abstract class LockContract extends ServerTest {
  Redlatch client;
  Lock lock;

  @BeforeEach
  void makeLock() {
    client = client();
    lock = view();
  }

  /** A view of its own each time. */
  abstract Lock view();

  /** What excludes it, and is held by another thread. */
  abstract NamedLock excluding();

  private Lease taken() throws Exception {
    return Wait.inThread(() -> excluding().with(LONG).acquire());
  }

  /** Somebody else has the lock while `work` goes on. */
  private void whileTaken(Work work) throws Exception {
    Lease lease = taken();
    work.run();
    lease.close();
  }

  /** `work` waits while somebody else has the lock, and is true when it has had it. */
  private void assertWaits(Callable<Boolean> work) throws Exception {
    Lease lease = taken();
    Worker<Boolean> waiter = new Worker<>(work);
    awaitWaiting();
    assertTrue(waiter.isWaiting());
    lease.close();
    assertTrue(waiter.end());
  }

  private boolean isTaken() {
    try (Lease lease = excluding().tryAcquire().orElse(null)) {
      return lease == null;
    }
  }

  private void awaitWaiting() {
    Redlatch looking = client();
    Wait.until(() -> waiting(looking, "x") == 1);
  }

  // ---- void lock() ------------------------------------------------------------------------------

  @Test
  void lockAcquiresTheLock() {
    lock.lock();
    assertTrue(isTaken());
    lock.unlock();
    assertFalse(isTaken());
  }

  /** "If the lock is not available then the current thread [...] lies dormant until [it is]". */
  @Test
  void lockWaits() throws Exception {
    assertWaits(this::lockAndUnlock);
  }

  private boolean lockAndUnlock() {
    lock.lock();
    boolean isOurs = isTaken();
    lock.unlock();
    return isOurs;
  }

  /** Only the others throw InterruptedException: an interrupt is kept for whoever looks for it. */
  @Test
  void lockIsNotInterrupted() throws Exception {
    Lease lease = taken();
    Worker<Boolean> waiter = new Worker<>(() -> lockAndUnlock() && Thread.interrupted());
    awaitWaiting();
    waiter.thread.interrupt();
    awaitWaiting();
    assertTrue(waiter.isWaiting());
    lease.close();
    assertTrue(waiter.end());
    Thread.currentThread().interrupt();
    lock.lock();
    lock.unlock();
    assertTrue(Thread.interrupted());
  }

  // ---- void lockInterruptibly() -----------------------------------------------------------------

  /** "Acquires the lock if it is available and returns immediately." */
  @Test
  void lockInterruptiblyAcquiresTheLock() throws Exception {
    lock.lockInterruptibly();
    assertTrue(isTaken());
    lock.unlock();
    assertFalse(isTaken());
  }

  @Test
  void lockInterruptiblyWaits() throws Exception {
    assertWaits(
        () -> {
          lock.lockInterruptibly();
          lock.unlock();
          return true;
        });
  }

  /** "has its interrupted status set on entry": "[...] and [it] is cleared". */
  @Test
  void lockInterruptiblyIsInterruptedOnEntry() {
    Thread.currentThread().interrupt();
    assertThrows(InterruptedException.class, lock::lockInterruptibly);
    assertFalse(Thread.interrupted());
    assertFalse(isTaken());
  }

  /** "is interrupted while acquiring the lock": likewise. */
  @Test
  void lockInterruptiblyIsInterruptedWhileItWaits() throws Exception {
    whileTaken(() -> assertInterrupted(lock::lockInterruptibly));
    assertFalse(isTaken());
  }

  private void assertInterrupted(Work work) throws Exception {
    Worker<Boolean> waiter =
        new Worker<>(
            () -> {
              assertThrows(InterruptedException.class, work::run);
              return Thread.interrupted();
            });
    awaitWaiting();
    waiter.thread.interrupt();
    assertFalse(waiter.end(), "the exception has taken it");
  }

  // ---- boolean tryLock() ------------------------------------------------------------------------

  /** "Acquires the lock if it is available and returns immediately with the value true." */
  @Test
  void tryLockAcquiresTheLock() {
    assertTrue(lock.tryLock());
    assertTrue(isTaken());
    lock.unlock();
    assertFalse(isTaken());
  }

  /** "If the lock is not available then [it] will return immediately with the value false." */
  @Test
  void tryLockDoesNotWait() throws Exception {
    whileTaken(() -> assertFalse(lock.tryLock()));
    assertFalse(isTaken());
    assertThrows(IllegalMonitorStateException.class, lock::unlock);
  }

  @Test
  void tryLockIsNotInterrupted() {
    Thread.currentThread().interrupt();
    assertTrue(lock.tryLock());
    lock.unlock();
    assertTrue(Thread.interrupted());
  }

  // ---- boolean tryLock(long, TimeUnit) ----------------------------------------------------------

  /** "If the lock is available this method returns immediately with the value true." */
  @Test
  void timedTryLockAcquiresTheLock() throws Exception {
    for (TimeUnit unit : TimeUnit.values()) {
      for (long time : new long[] {Long.MAX_VALUE, 0, -1, Long.MIN_VALUE}) {
        assertTrue(lock.tryLock(time, unit), () -> time + " " + unit);
        assertTrue(isTaken());
        lock.unlock();
      }
    }
  }

  /** "If the specified waiting time elapses then the value false is returned." */
  @Test
  void timedTryLockWaitsForThatTime() throws Exception {
    whileTaken(
        () -> {
          long begin = System.nanoTime();
          assertFalse(lock.tryLock(60, TimeUnit.MILLISECONDS));
          assertTrue(System.nanoTime() - begin >= 60_000_000);
        });
    assertThrows(IllegalMonitorStateException.class, lock::unlock);
  }

  /** Also one that is too short for an answer. */
  @Test
  void timedTryLockWithATinyTimeReturnsFalse() throws Exception {
    server.pause();
    assertFalse(lock.tryLock(1, TimeUnit.NANOSECONDS));
    server.resume();
    lock.lock();
    lock.unlock();
  }

  /** "If the time is less than or equal to zero, the method will not wait at all." */
  @Test
  void timedTryLockOfNoTimeDoesNotWait() throws Exception {
    whileTaken(
        () -> {
          for (long time : new long[] {0, -1, Long.MIN_VALUE}) {
            assertFalse(lock.tryLock(time, TimeUnit.MILLISECONDS));
            assertFalse(lock.tryLock(time, TimeUnit.DAYS));
          }
        });
  }

  /** "The lock is acquired by the current thread": "the value true is returned". */
  @Test
  void timedTryLockReturnsTrueWhenTheLockIsGranted() throws Exception {
    assertWaits(
        () -> {
          boolean isLocked = lock.tryLock(Long.MAX_VALUE, TimeUnit.DAYS);
          lock.unlock();
          return isLocked;
        });
  }

  @Test
  void timedTryLockIsInterruptedOnEntry() {
    for (long time : new long[] {1, 0, -1}) {
      Thread.currentThread().interrupt();
      assertThrows(InterruptedException.class, () -> lock.tryLock(time, TimeUnit.DAYS));
      assertFalse(Thread.interrupted());
    }
    assertFalse(isTaken());
  }

  @Test
  void timedTryLockIsInterruptedWhileItWaits() throws Exception {
    whileTaken(() -> assertInterrupted(() -> lock.tryLock(1, TimeUnit.DAYS)));
    assertFalse(isTaken());
  }

  // ---- void unlock() ----------------------------------------------------------------------------

  /** "only the holder of the lock can release it and may throw an (unchecked) exception". */
  @Test
  void onlyTheThreadThatLockedMayUnlock() throws Exception {
    assertThrows(IllegalMonitorStateException.class, lock::unlock);
    lock.lock();
    Wait.inThread(() -> assertThrows(IllegalMonitorStateException.class, lock::unlock));
    assertTrue(isTaken());
    lock.unlock();
    IllegalMonitorStateException failure =
        assertThrows(IllegalMonitorStateException.class, lock::unlock);
    String message = failure.getMessage();
    assertTrue(message.startsWith("'x' is not locked by this thread"), message);
  }

  @Test
  void unlockAfterALossThrows() {
    lock.lock();
    client.forceRelease("x");
    IllegalMonitorStateException failure =
        assertThrows(IllegalMonitorStateException.class, lock::unlock);
    assertInstanceOf(LockLostException.class, failure.getCause());
    lock.lock();
    lock.unlock();
  }

  @Test
  void unlockIgnoresAnInterrupt() {
    lock.lock();
    Thread.currentThread().interrupt();
    lock.unlock();
    assertTrue(Thread.interrupted());
    assertFalse(isTaken());
  }

  // ---- Condition newCondition() -----------------------------------------------------------------

  /** "throws UnsupportedOperationException if this Lock implementation does not support [them]". */
  @Test
  void conditionsAreNotSupported() {
    assertThrows(UnsupportedOperationException.class, lock::newCondition);
    lock.lock();
    assertThrows(UnsupportedOperationException.class, lock::newCondition);
    lock.unlock();
  }

  // ---- what our views say -----------------------------------------------------------------------

  @Test
  void threadMayLockAgain() throws Exception {
    lock.lock();
    assertTrue(lock.tryLock());
    assertTrue(lock.tryLock(0, TimeUnit.DAYS));
    lock.lockInterruptibly();
    for (int i = 0; i < 3; i++) {
      lock.unlock();
      assertTrue(isTaken());
    }
    lock.unlock();
    assertFalse(isTaken());
    assertTrue(lock.tryLock(-1, TimeUnit.DAYS));
    lock.unlock();
    assertThrows(IllegalMonitorStateException.class, lock::unlock);
  }

  @Test
  void lockingAgainIsInterrupted() {
    lock.lock();
    Thread.currentThread().interrupt();
    assertThrows(InterruptedException.class, lock::lockInterruptibly);
    Thread.currentThread().interrupt();
    assertThrows(InterruptedException.class, () -> lock.tryLock(1, TimeUnit.DAYS));
    lock.unlock();
    assertFalse(isTaken(), "neither counts");
  }

  /** Whoever locks a lost lock again must not think that it is alone. */
  @Test
  void lostLockCannotBeLockedAgain() {
    Lock lost = shortView();
    lost.lock();
    client.forceRelease("x");
    Wait.until(
        () -> {
          try {
            lost.lock();
            lost.unlock();
            return false;
          } catch (LockLostException told) {
            return true;
          }
        });
    assertThrows(LockLostException.class, lost::tryLock);
    assertThrows(IllegalMonitorStateException.class, lost::unlock);
    assertTrue(lost.tryLock());
    lost.unlock();
  }

  /** Soon known to be lost. */
  abstract Lock shortView();

  @Test
  void otherFailuresThrowRedlatchExceptions() {
    client.close();
    assertFails(Status.E_CLOSED, lock::lock);
    assertFails(Status.E_CLOSED, lock::lockInterruptibly);
    assertFails(Status.E_CLOSED, lock::tryLock);
    assertFails(Status.E_CLOSED, () -> lock.tryLock(1, TimeUnit.DAYS));
    assertThrows(IllegalMonitorStateException.class, lock::unlock);
  }
}

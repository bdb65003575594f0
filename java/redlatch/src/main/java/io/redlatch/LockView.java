// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import org.jspecify.annotations.Nullable;

/**
 * A NamedLock as java.util.concurrent has locks: the thread that has it is its owner. The views of
 * both sides of a read-write lock share what their threads hold.
 */
final class LockView implements Lock {
  /** The lease of a thread: one for both sides. */
  static final class Hold {
    final Lease lease;
    int readCount;
    int writeCount;

    Hold(Lease lease) {
      this.lease = lease;
    }
  }

  private final NamedLock lock;
  private final boolean isWriting;
  private final ThreadLocal<@Nullable Hold> holds;

  /** A lock that is not a read-write lock has one side, that of the writer. */
  LockView(NamedLock lock, boolean isWriting, ThreadLocal<@Nullable Hold> holds) {
    this.lock = lock;
    this.isWriting = isWriting;
    this.holds = holds;
  }

  private boolean isLocked(@Nullable Hold hold) {
    return hold != null && (isWriting ? hold.writeCount : hold.readCount) > 0;
  }

  private void count(Hold hold, int change) {
    if (isWriting) {
      hold.writeCount = Math.addExact(hold.writeCount, change);
    } else {
      hold.readCount = Math.addExact(hold.readCount, change);
    }
  }

  private boolean wouldWaitForItself() {
    Hold hold = holds.get();
    return isWriting && hold != null && !isLocked(hold);
  }

  /** Not one that was lost: others may be inside already. */
  private boolean reenter() {
    if (wouldWaitForItself()) {
      throw new IllegalMonitorStateException(
          "this thread reads " + Text.quoted(lock.name()) + ", and would wait for itself");
    }
    Hold hold = holds.get();
    if (hold == null) {
      // Asked for, it has a place among those of the thread, which would grow with each new view.
      holds.remove();
      return false;
    }
    hold.lease.checkHeld();
    count(hold, 1);
    return true;
  }

  private boolean enter(Lease lease) {
    Hold hold = new Hold(lease);
    count(hold, 1);
    holds.set(hold);
    return true;
  }

  @Override
  public void lock() {
    if (!reenter()) {
      enter(lock.acquireUninterruptibly());
    }
  }

  @Override
  public void lockInterruptibly() throws InterruptedException {
    if (Thread.interrupted()) {
      throw new InterruptedException();
    }
    if (!reenter()) {
      enter(lock.acquire());
    }
  }

  @Override
  public boolean tryLock() {
    return !wouldWaitForItself() && (reenter() || lock.tryAcquire().map(this::enter).isPresent());
  }

  /** False also if the time was too short for an answer; that is cleaned up. */
  @Override
  public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
    if (Thread.interrupted()) {
      throw new InterruptedException();
    }
    try {
      return reenter() || enter(lock.acquire(Text.wait(time, unit)));
    } catch (RedlatchException failure) {
      if (failure instanceof NotAcquiredException || failure.status() == Status.E_OUTCOME_UNKNOWN) {
        return false;
      }
      throw failure;
    }
  }

  /**
   * @throws IllegalMonitorStateException if this thread does not have the lock; with the reason as
   *     its cause if it has lost it.
   */
  @Override
  public void unlock() {
    Hold hold = holds.get();
    if (hold == null || !isLocked(hold)) {
      String side = hold == null ? "" : isWriting ? " to write" : " to read";
      throw new IllegalMonitorStateException(
          Text.quoted(lock.name()) + " is not locked by this thread" + side);
    }
    count(hold, -1);
    try {
      if (hold.readCount == 0 && hold.writeCount == 0) {
        holds.remove();
        hold.lease.close();
      } else if (isWriting && hold.writeCount == 0) {
        hold.lease.downgrade();
      }
    } catch (LockLostException lost) {
      throw (IllegalMonitorStateException)
          new IllegalMonitorStateException(lost.getMessage()).initCause(lost);
    } catch (RedlatchException failure) {
      // The writer may continue to read, even if other readers may not enter yet.
      if (!Lease.goesOn(failure.status())) {
        throw failure;
      }
    }
  }

  @Override
  public Condition newCondition() {
    throw new UnsupportedOperationException("a lock of many hosts has no conditions");
  }

  @Override
  public String toString() {
    return "Lock[" + lock.name() + (isLocked(holds.get()) ? ", locked by this thread" : "") + "]";
  }
}

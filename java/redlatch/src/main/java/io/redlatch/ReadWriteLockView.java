// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReadWriteLock;
import org.jspecify.annotations.Nullable;

/** A NamedReadWriteLock as java.util.concurrent has them: threads own what they have locked. */
final class ReadWriteLockView implements ReadWriteLock {
  /** What a thread holds: one lease, for both. */
  private static final class Hold {
    final Lease lease;
    int readCount;
    int writeCount;

    Hold(Lease lease) {
      this.lease = lease;
    }
  }

  private final Side readLock;
  private final Side writeLock;
  private final ThreadLocal<@Nullable Hold> holds = new ThreadLocal<>();

  ReadWriteLockView(NamedReadWriteLock lock) {
    this.readLock = new Side(lock.readLock(), false);
    this.writeLock = new Side(lock.writeLock(), true);
  }

  @Override
  public Lock readLock() {
    return readLock;
  }

  @Override
  public Lock writeLock() {
    return writeLock;
  }

  private final class Side implements Lock {
    private final NamedLock lock;
    private final boolean isWriting;

    Side(NamedLock lock, boolean isWriting) {
      this.lock = lock;
      this.isWriting = isWriting;
    }

    private void count(Hold hold, int change) {
      if (isWriting) {
        hold.writeCount += change;
      } else {
        hold.readCount += change;
      }
    }

    private boolean wouldWaitForItself() {
      Hold hold = holds.get();
      return isWriting && hold != null && hold.writeCount == 0;
    }

    private void refuseToWaitForItself() {
      if (wouldWaitForItself()) {
        throw new IllegalMonitorStateException(
            "this thread reads " + Text.quoted(lock.name()) + ", and would wait for itself");
      }
    }

    /** As that of LockView. */
    private boolean reenter() {
      Hold hold = holds.get();
      if (hold == null) {
        return false;
      }
      hold.lease.checkHeld();
      count(hold, 1);
      return true;
    }

    private boolean enter(@Nullable Lease lease) {
      if (lease == null) {
        return false;
      }
      Hold hold = new Hold(lease);
      count(hold, 1);
      holds.set(hold);
      return true;
    }

    @Override
    public void lock() {
      refuseToWaitForItself();
      if (!reenter()) {
        enter(lock.acquireUninterruptibly());
      }
    }

    @Override
    public void lockInterruptibly() throws InterruptedException {
      if (Thread.interrupted()) {
        throw new InterruptedException();
      }
      refuseToWaitForItself();
      if (!reenter()) {
        enter(lock.acquire());
      }
    }

    @Override
    public boolean tryLock() {
      return !wouldWaitForItself() && (reenter() || enter(lock.tryAcquire().orElse(null)));
    }

    @Override
    public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
      if (Thread.interrupted()) {
        throw new InterruptedException();
      }
      refuseToWaitForItself();
      if (reenter()) {
        return true;
      }
      return enter(lock.tryWithin(time, unit));
    }

    /** As that of LockView. */
    @Override
    public void unlock() {
      Hold hold = holds.get();
      if (hold == null || (isWriting ? hold.writeCount : hold.readCount) == 0) {
        throw new IllegalMonitorStateException(
            Text.quoted(lock.name()) + " is not locked by this thread to " + verb());
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
        if (!Lease.goesOn(failure.status())) {
          throw failure;
        }
      }
    }

    @Override
    public Condition newCondition() {
      throw new UnsupportedOperationException("a lock of many hosts has no conditions");
    }

    private String verb() {
      return isWriting ? "write" : "read";
    }

    @Override
    public String toString() {
      return "Lock[" + lock.name() + ", to " + verb() + "]";
    }
  }
}

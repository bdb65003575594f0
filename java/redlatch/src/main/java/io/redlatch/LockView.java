// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import org.jspecify.annotations.Nullable;

/** A NamedLock as java.util.concurrent has locks: the thread that has it is its owner. */
final class LockView implements Lock {
  /** What a thread holds. */
  private static final class Hold {
    final Lease lease;
    int count = 1;

    Hold(Lease lease) {
      this.lease = lease;
    }
  }

  private final NamedLock lock;
  private final ThreadLocal<@Nullable Hold> holds = new ThreadLocal<>();

  LockView(NamedLock lock) {
    this.lock = lock;
  }

  /** Not one that was lost: others may be inside already. */
  private boolean reenter() {
    Hold hold = holds.get();
    if (hold == null) {
      return false;
    }
    hold.lease.checkHeld();
    hold.count++;
    return true;
  }

  private boolean enter(@Nullable Lease lease) {
    if (lease == null) {
      return false;
    }
    holds.set(new Hold(lease));
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
    return reenter() || enter(lock.tryAcquire().orElse(null));
  }

  @Override
  public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
    if (Thread.interrupted()) {
      throw new InterruptedException();
    }
    if (reenter()) {
      return true;
    }
    return enter(lock.tryWithin(time, unit));
  }

  /**
   * @throws IllegalMonitorStateException if this thread does not have the lock; with the reason as
   *     its cause if it has lost it.
   */
  @Override
  public void unlock() {
    Hold hold = holds.get();
    if (hold == null) {
      throw new IllegalMonitorStateException(
          Text.quoted(lock.name()) + " is not locked by this thread");
    }
    if (--hold.count > 0) {
      return;
    }
    holds.remove();
    try {
      hold.lease.close();
    } catch (LockLostException lost) {
      throw (IllegalMonitorStateException)
          new IllegalMonitorStateException(lost.getMessage()).initCause(lost);
    }
  }

  @Override
  public Condition newCondition() {
    throw new UnsupportedOperationException("a lock of many hosts has no conditions");
  }

  @Override
  public String toString() {
    return "Lock[" + lock.name() + (holds.get() == null ? "" : ", locked by this thread") + "]";
  }
}

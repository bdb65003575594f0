// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch.spring.integration;

import io.redlatch.LockLostException;
import io.redlatch.NamedLock;
import io.redlatch.Redlatch;
import io.redlatch.RedlatchException;
import java.util.ConcurrentModificationException;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.function.Function;
import org.springframework.integration.support.locks.ExpirableLockRegistry;
import org.springframework.integration.support.locks.RenewableLockRegistry;
import org.springframework.util.Assert;

/**
 * The locks of redlatch as Spring Integration wants them. They renew themselves while they are
 * held, and are bound to threads, and reentrant: what one thread has locked by a key, it alone
 * unlocks by that key, and nobody else has it, in this registry or any other. Otherwise they are as
 * {@link NamedLock#asLock} has them.
 *
 * <p>Any number of keys may be used: of one that is not locked, nothing is kept. The client is the
 * caller's to close.
 */
public final class RedlatchLockRegistry implements ExpirableLockRegistry, RenewableLockRegistry {
  /** What a thread has locked. */
  private static final class Hold {
    final Lock view;
    int count;

    Hold(Lock view) {
      this.view = view;
    }
  }

  private final Function<String, NamedLock> locks;

  /**
   * By key. A view is made for each thread that locks, which is an owner anyway, and goes with its
   * last unlock: so nothing can be taken away while somebody has it, and nothing stays.
   */
  private final ThreadLocal<Map<String, Hold>> holds = ThreadLocal.withInitial(HashMap::new);

  /** A key is the name of the lock. */
  public RedlatchLockRegistry(Redlatch client) {
    this(client::lock);
  }

  /**
   * Makes the locks by a function, which may put something before the key, set options, or ask a
   * Redlock: {@code key -> client.lock("orders:" + key).with(options)}.
   */
  public RedlatchLockRegistry(Function<String, NamedLock> locks) {
    this.locks = locks;
  }

  /**
   * The lock of a key. Nothing is sent yet, and two of one key are the same lock.
   *
   * @param lockKey a String, as with Spring's own registries.
   * @throws IllegalArgumentException if it is something else.
   */
  @Override
  public Lock obtain(Object lockKey) {
    return new KeyLock(text(lockKey));
  }

  private static String text(Object lockKey) {
    Assert.isInstanceOf(String.class, lockKey, "The key of a lock is a String.");
    return (String) lockKey;
  }

  /** Does nothing: no locks are kept that are not locked. */
  @Override
  public void expireUnusedOlderThan(long age) {}

  /**
   * Only looks whether this thread has the lock, by the local clock: locks renew themselves.
   *
   * @throws IllegalStateException if not; with the {@link LockLostException} as its cause if it has
   *     lost it, or another {@link RedlatchException} if the client was closed.
   */
  @Override
  public void renewLock(Object lockKey) {
    String key = text(lockKey);
    Hold hold = holds.get().get(key);
    if (hold == null) {
      throw new IllegalStateException(notLocked(key));
    }
    try {
      hold.view.lock(); // again, which only counts, unless it was lost
    } catch (RedlatchException ended) {
      throw new IllegalStateException(ended.getMessage(), ended);
    }
    hold.view.unlock();
  }

  private static String notLocked(String key) {
    return "'" + key + "' is not locked by this thread";
  }

  private final class KeyLock implements Lock {
    private final String key;

    KeyLock(String key) {
      this.key = key;
    }

    /** The one that this thread has locked, or one to lock. */
    private Hold hold() {
      Hold hold = holds.get().get(key);
      return hold == null ? new Hold(locks.apply(key).asLock()) : hold;
    }

    private boolean enter(Hold hold) {
      hold.count++;
      holds.get().put(key, hold);
      return true;
    }

    @Override
    public void lock() {
      Hold hold = hold();
      hold.view.lock();
      enter(hold);
    }

    @Override
    public void lockInterruptibly() throws InterruptedException {
      Hold hold = hold();
      hold.view.lockInterruptibly();
      enter(hold);
    }

    @Override
    public boolean tryLock() {
      Hold hold = hold();
      return hold.view.tryLock() && enter(hold);
    }

    @Override
    public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
      Hold hold = hold();
      return hold.view.tryLock(time, unit) && enter(hold);
    }

    @Override
    public void unlock() {
      Hold hold = holds.get().get(key);
      if (hold == null) {
        throw new IllegalMonitorStateException(notLocked(key));
      }
      if (--hold.count == 0) {
        forget();
      }
      try {
        hold.view.unlock();
      } catch (IllegalMonitorStateException lost) {
        // What Spring's registries say of a lock that has expired, since 6.4: by it, work is rolled
        // back. Nothing in Spring Integration tells the two apart: the leader initiator takes any
        // exception as the end of the lead, and all else passes it on.
        throw new ConcurrentModificationException(lost.getMessage(), lost.getCause());
      }
    }

    private void forget() {
      Map<String, Hold> own = holds.get();
      own.remove(key);
      if (own.isEmpty()) {
        holds.remove();
      }
    }

    @Override
    public Condition newCondition() {
      throw new UnsupportedOperationException("a lock of many hosts has no conditions");
    }

    @Override
    public String toString() {
      return "Lock[" + key + (holds.get().containsKey(key) ? ", locked by this thread" : "") + "]";
    }
  }
}

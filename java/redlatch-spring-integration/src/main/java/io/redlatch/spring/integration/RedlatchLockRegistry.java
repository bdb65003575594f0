// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch.spring.integration;

import io.redlatch.LockLostException;
import io.redlatch.NamedLock;
import io.redlatch.Redlatch;
import io.redlatch.RedlatchException;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.ConcurrentModificationException;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.function.Function;
import org.springframework.integration.support.locks.ExpirableLockRegistry;
import org.springframework.integration.support.locks.RenewableLockRegistry;
import org.springframework.util.Assert;

/**
 * The locks of redlatch as Spring Integration wants them. They renew themselves while they are
 * held. They are bound to threads, and reentrant: only the thread that has locked a key can unlock
 * it, and no other thread of this or any other registry has it meanwhile. Otherwise as {@link
 * NamedLock#asLock}.
 *
 * <p>To unlock a key that this thread has not locked throws {@link IllegalMonitorStateException}.
 * To unlock a lost lock throws {@link ConcurrentModificationException}, with the {@link
 * LockLostException} as its cause.
 *
 * <p>Any number of keys may be used: the lock of a key is kept while it is locked or the program
 * has a reference to it. So there is no capacity to set. The caller closes the client.
 */
public final class RedlatchLockRegistry implements ExpirableLockRegistry, RenewableLockRegistry {
  /** The actual reason follows, which may differ from expiration. */
  private static final String LOST =
      "Lock was released in the store due to expiration. The integrity of data protected by this"
          + " lock may have been compromised. ";

  /** The lock of a thread. */
  private static final class Hold {
    final KeyLock lock; // not collected while it is locked
    final Lock view;
    int count;

    Hold(KeyLock lock, Lock view) {
      this.lock = lock;
      this.view = view;
    }
  }

  /** The lock of a key, for as long as the program or a thread that has locked it refers to it. */
  private static final class Known extends WeakReference<KeyLock> {
    final String key;

    Known(KeyLock lock, ReferenceQueue<KeyLock> collected) {
      super(lock, collected);
      this.key = lock.key;
    }
  }

  private final Function<String, NamedLock> makeLock;
  private final ConcurrentMap<String, Known> locks = new ConcurrentHashMap<>();
  private final ReferenceQueue<KeyLock> collected = new ReferenceQueue<>();

  /**
   * The locks of a thread, by key. Each thread that locks has a view of its own, because a view is
   * an owner. The last unlock removes it: so no view is removed while it is used, and none is left.
   */
  private final ThreadLocal<Map<String, Hold>> holds = ThreadLocal.withInitial(HashMap::new);

  /** Makes a registry in which a key is the name of the lock. */
  public RedlatchLockRegistry(Redlatch client) {
    this(client::lock);
  }

  /**
   * Makes a registry whose locks a function makes. It may put a prefix before the key, set options,
   * or use a Redlock: {@code key -> client.lock("orders:" + key).with(options)}.
   */
  public RedlatchLockRegistry(Function<String, NamedLock> makeLock) {
    this.makeLock = makeLock;
  }

  /**
   * Returns the lock of a key: the same object each time, while the program refers to it or a
   * thread has locked it. Each registry has its own objects. Sends nothing.
   *
   * @param lockKey a String, as with Spring's own registries.
   * @throws IllegalArgumentException if it is not a String.
   */
  @Override
  public Lock obtain(Object lockKey) {
    String key = text(lockKey);
    forgetCollected();
    while (true) {
      Known known = locks.get(key);
      KeyLock lock = known == null ? null : known.get();
      if (lock != null) {
        return lock;
      }
      lock = new KeyLock(key);
      Known made = new Known(lock, collected);
      if (known == null ? locks.putIfAbsent(key, made) == null : locks.replace(key, known, made)) {
        return lock;
      }
    }
  }

  private void forgetCollected() {
    for (Reference<?> gone; (gone = collected.poll()) != null; ) {
      locks.remove(((Known) gone).key, gone); // unless there is a new one
    }
  }

  /** For tests: the number of keys that the registry has. */
  int lockCount() {
    return locks.size();
  }

  private static String text(Object lockKey) {
    Assert.isInstanceOf(String.class, lockKey, "The key of a lock is a String.");
    return (String) lockKey;
  }

  /** Does nothing: the registry keeps no unlocked lock. */
  @Override
  public void expireUnusedOlderThan(long age) {}

  /**
   * Checks that this thread has the lock, by the local clock: locks renew themselves. Sends
   * nothing.
   *
   * @throws IllegalStateException if it does not; with the {@link LockLostException} as its cause
   *     if it was lost, or another {@link RedlatchException} if the client was closed.
   */
  @Override
  public void renewLock(Object lockKey) {
    String key = text(lockKey);
    Hold hold = holds.get().get(key);
    if (hold == null) {
      throw new IllegalStateException("Could not renew mutex" + notLocked(key));
    }
    try {
      hold.view.lock(); // again, which only counts, unless it was lost
    } catch (RedlatchException ended) {
      String message = "Could not renew mutex" + at(key) + ended.getMessage();
      throw new IllegalStateException(message, ended);
    }
    hold.view.unlock();
  }

  // Messages begin as those of Spring's registries, for which its tests, and maybe programs, look.

  private static String at(String key) {
    return " at '" + key + "': ";
  }

  private static String notLocked(String key) {
    return at(key) + "this thread has not locked it";
  }

  private final class KeyLock implements Lock {
    private final String key;

    KeyLock(String key) {
      this.key = key;
    }

    /** The one that this thread has locked, or one to lock. */
    private Hold hold() {
      Hold hold = holds.get().get(key);
      return hold == null ? new Hold(this, makeLock.apply(key).asLock()) : hold;
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
        // As Lock has it, and all of Spring's registries but that for Redis.
        throw new IllegalMonitorStateException("You do not own lock" + notLocked(key));
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
        throw new ConcurrentModificationException(LOST + lost.getMessage(), lost.getCause());
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
      throw new UnsupportedOperationException(
          "Conditions are not supported: a lock of many hosts has none");
    }

    @Override
    public String toString() {
      return "Lock[" + key + (holds.get().containsKey(key) ? ", locked by this thread" : "") + "]";
    }
  }
}

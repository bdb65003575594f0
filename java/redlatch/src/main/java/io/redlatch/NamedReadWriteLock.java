// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReadWriteLock;
import org.jspecify.annotations.Nullable;

/**
 * A read-write lock by its name: many readers at a time, or one writer. Readers and writers have
 * one queue. {@link Lease#upgrade} and {@link Lease#downgrade} change the mode of a lease. Any
 * thread may use it.
 */
public final class NamedReadWriteLock {
  private record View(Lock readLock, Lock writeLock) implements ReadWriteLock {}

  private final NamedLock readLock;
  private final NamedLock writeLock;

  NamedReadWriteLock(NamedLock readLock, NamedLock writeLock) {
    this.readLock = readLock;
    this.writeLock = writeLock;
  }

  /** Returns the same lock with other options. */
  public NamedReadWriteLock with(LockOptions options) {
    return new NamedReadWriteLock(readLock.with(options), writeLock.with(options));
  }

  /** The lock to read: together with other readers. */
  public NamedLock readLock() {
    return readLock;
  }

  /** The lock to write: alone. It is the lock of {@link Redlatch#lock} of that name. */
  public NamedLock writeLock() {
    return writeLock;
  }

  /**
   * Returns a view as a {@link ReadWriteLock}. Its owner is the thread that locks it, which may
   * lock it again. The writer may read, and continue to read after it has unlocked the write lock.
   *
   * <p>A reader must not lock the write lock, because it would wait for itself: that throws {@link
   * IllegalMonitorStateException}, and tryLock() without a time is false. Otherwise as {@link
   * NamedLock#asLock}.
   */
  public ReadWriteLock asReadWriteLock() {
    ThreadLocal<LockView.@Nullable Hold> holds = new ThreadLocal<>();
    return new View(
        new LockView(readLock, false, holds), new LockView(writeLock, true, holds));
  }
}

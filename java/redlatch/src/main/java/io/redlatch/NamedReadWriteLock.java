// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReadWriteLock;
import org.jspecify.annotations.Nullable;

/**
 * A read-write lock by its name: many may read together, one may write alone, and all wait in one
 * line. {@link Lease#upgrade} and {@link Lease#downgrade} go from one to the other.
 */
public final class NamedReadWriteLock {
  private record View(Lock readLock, Lock writeLock) implements ReadWriteLock {}

  private final NamedLock readLock;
  private final NamedLock writeLock;

  NamedReadWriteLock(NamedLock readLock, NamedLock writeLock) {
    this.readLock = readLock;
    this.writeLock = writeLock;
  }

  /** The same lock, to be taken with other options. */
  public NamedReadWriteLock with(LockOptions options) {
    return new NamedReadWriteLock(readLock.with(options), writeLock.with(options));
  }

  /** To read: together with others that read. */
  public NamedLock readLock() {
    return readLock;
  }

  /** To write: alone. It is the mutex of that name. */
  public NamedLock writeLock() {
    return writeLock;
  }

  /**
   * A view as a {@link ReadWriteLock} that is bound to threads, and reentrant: the thread that
   * writes may read, and may go on reading when it has unlocked the writing. One that reads may not
   * write, for it would wait for itself: that is an {@link IllegalMonitorStateException}, and for
   * tryLock() without a time false. Otherwise both are as {@link NamedLock#asLock} says.
   */
  public ReadWriteLock asReadWriteLock() {
    ThreadLocal<LockView.@Nullable Hold> holds = new ThreadLocal<>();
    return new View(
        new LockView(readLock, false, holds), new LockView(writeLock, true, holds));
  }
}

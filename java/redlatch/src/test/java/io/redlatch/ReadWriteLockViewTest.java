// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReadWriteLock;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

/** The view of a read-write lock, by the contract of ReadWriteLock, and of Lock for both sides. */
class ReadWriteLockViewTest {
  @Nested
  class WriteLock extends LockContract {
    @Override
    Lock view() {
      return client.readWriteLock("x").with(LONG).asReadWriteLock().writeLock();
    }

    @Override
    Lock shortView() {
      return client.readWriteLock("x").with(SHORT).asReadWriteLock().writeLock();
    }

    @Override
    NamedLock excluding() {
      return client.readWriteLock("x").readLock();
    }
  }

  @Nested
  class ReadLock extends LockContract {
    @Override
    Lock view() {
      return client.readWriteLock("x").with(LONG).asReadWriteLock().readLock();
    }

    @Override
    Lock shortView() {
      return client.readWriteLock("x").with(SHORT).asReadWriteLock().readLock();
    }

    @Override
    NamedLock excluding() {
      return client.readWriteLock("x").writeLock();
    }
  }

  @Nested
  class Both extends ServerTest {
    private ReadWriteLock view() {
      return client().readWriteLock("x").with(LONG).asReadWriteLock();
    }

    @Test
    void viewAlwaysReturnsTheSameTwoLocks() {
      ReadWriteLock both = view();
      assertSame(both.readLock(), both.readLock());
      assertSame(both.writeLock(), both.writeLock());
    }

    /** "The read lock may be held simultaneously by multiple reader threads [...]". */
    @Test
    void manyThreadsMayReadAndOneMayWrite() throws Exception {
      ReadWriteLock both = view();
      both.readLock().lock();
      assertEquals("Lock[x, locked by this thread]", both.readLock().toString());
      assertEquals("Lock[x]", both.writeLock().toString());
      assertTrue(othersGet(both.readLock()));
      assertTrue(othersGet(view().readLock()));
      assertFalse(othersGet(both.writeLock()));
      both.readLock().unlock();
      both.writeLock().lock();
      assertFalse(othersGet(both.readLock()));
      assertFalse(othersGet(both.writeLock()));
      both.writeLock().unlock();
    }

    @Test
    void writerMayReadAndKeepReadingAfterItsUnlock() throws Exception {
      ReadWriteLock both = view();
      both.writeLock().lock();
      both.readLock().lock();
      both.readLock().unlock();
      both.readLock().lock();
      assertFalse(othersGet(both.readLock()));
      both.writeLock().unlock();
      assertTrue(othersGet(both.readLock()), "it only reads now");
      assertFalse(othersGet(both.writeLock()));
      assertThrows(IllegalMonitorStateException.class, both.writeLock()::unlock);
      both.readLock().unlock();
      assertFalse(server.has("x"));
    }

    /** "may throw an (unchecked) exception" for "an invocation that would cause deadlock". */
    @Test
    void readerMayNotLockTheWriteLock() throws Exception {
      ReadWriteLock both = view();
      both.readLock().lock();
      assertFalse(both.writeLock().tryLock());
      IllegalMonitorStateException failure =
          assertThrows(IllegalMonitorStateException.class, both.writeLock()::lock);
      assertTrue(failure.getMessage().endsWith("would wait for itself"), failure::toString);
      assertThrows(
          IllegalMonitorStateException.class, () -> both.writeLock().tryLock(1, TimeUnit.DAYS));
      assertThrows(IllegalMonitorStateException.class, both.writeLock()::lockInterruptibly);
      assertThrows(IllegalMonitorStateException.class, both.writeLock()::unlock);
      both.readLock().unlock();
      assertTrue(othersGet(both.writeLock()));
    }

    @Test
    void readAndWriteLockAreUnlockedSeparately() {
      ReadWriteLock both = view();
      both.writeLock().lock();
      assertThrows(IllegalMonitorStateException.class, both.readLock()::unlock);
      both.writeLock().lock();
      both.readLock().lock();
      both.writeLock().unlock();
      assertEquals(Lease.Mode.WRITE, client().inspect("x").holders().get(0).mode());
      both.readLock().unlock();
      assertTrue(server.has("x"));
      both.writeLock().unlock();
      assertFalse(server.has("x"));
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.Wait.Worker;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import org.junit.jupiter.api.Test;

/** The view of a mutex, by the contract of Lock. */
class LockViewTest extends LockContract {
  /** Guarded by a lock of ours, and by nothing that Java knows of. */
  private int counter;

  @Override
  Lock view() {
    return client.lock("x").with(LONG).asLock();
  }

  @Override
  Lock shortView() {
    return client.lock("x").with(SHORT).asLock();
  }

  @Override
  NamedLock excluding() {
    return client.lock("x");
  }

  @Test
  void twoViewsAreTwoOwners() {
    lock.lock();
    assertFalse(view().tryLock());
    lock.unlock();
  }

  @Test
  void unlockedViewLeavesNoThreadLocal() throws Exception {
    boolean[] isKept = {false};
    ThreadLocal<LockView.Hold> holds =
        new ThreadLocal<>() {
          @Override
          protected LockView.Hold initialValue() {
            isKept[0] = true;
            return null;
          }

          @Override
          public void remove() {
            isKept[0] = false;
            super.remove();
          }
        };
    lock.lock();
    Lock refused = new LockView(client.lock("x"), true, holds);
    assertFalse(refused.tryLock());
    assertFalse(isKept[0]);
    assertFalse(refused.tryLock(1, TimeUnit.MILLISECONDS));
    assertFalse(isKept[0]);
    lock.unlock();
  }

  @Test
  void eachThreadIsAnOwner() throws Exception {
    lock.lock();
    assertFalse(othersGet(lock));
    assertTrue(lock.toString().endsWith("Lock[x, locked by this thread]"), lock::toString);
    assertEquals("Lock[x]", Wait.inThread(lock::toString));
    lock.unlock();
  }

  /** "must enforce the same memory synchronization semantics as provided by the monitor lock". */
  @Test
  void writesUnderTheLockAreVisibleToTheNextHolder() throws Exception {
    Redlatch other = client();
    List<Lock> views = List.of(view(), view(), other.lock("x").asLock());
    List<Worker<?>> workers = new ArrayList<>();
    for (int i = 0; i < 6; i++) {
      Lock mine = views.get(i % views.size());
      workers.add(
          Worker.doing(
              () -> {
                for (int k = 0; k < 300; k++) {
                  mine.lock();
                  counter++;
                  mine.unlock();
                }
              }));
    }
    for (Worker<?> worker : workers) {
      worker.end();
    }
    assertEquals(6 * 300, counter);
  }
}

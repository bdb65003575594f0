// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.Wait.Worker;
import java.time.Duration;
import org.junit.jupiter.api.Test;

class ReadWriteLockTest extends ServerTest {

  @Test
  void readerBecomesTheWriterAndAReaderAgain() throws Exception {
    NamedReadWriteLock lock = client().readWriteLock("x").with(LONG);
    Redlatch looking = client();
    Lease one = lock.readLock().acquire();
    Lease two = lock.readLock().acquire();
    assertFalse(one.tryUpgrade(), "others read");
    assertFails(Status.BUSY, () -> one.upgrade(Duration.ZERO));
    assertTimesOut(one::upgrade);
    one.checkHeld();
    long before = one.fence();
    Worker<Lease.Mode> upgrading =
        new Worker<>(
            () -> {
              one.upgrade();
              return one.mode();
            });
    Wait.until(() -> waiting(looking, "x") == 1);
    assertEquals(Lease.Mode.UPGRADE, looking.inspect("x").waiters().get(0).mode());
    assertFails(Status.E_DEADLOCK, two::upgrade);
    two.close();
    assertEquals(Lease.Mode.WRITE, upgrading.end());
    assertTrue(one.fence() > before);
    assertTrue(lock.readLock().tryAcquire().isEmpty());
    one.downgrade();
    assertEquals(Lease.Mode.READ, one.mode());
    lock.readLock().tryAcquire().orElseThrow().close();
    assertTrue(one.tryUpgrade());
    assertTrue(one.release());
    assertFails(Status.E_NOT_HELD, one::downgrade);
  }
}

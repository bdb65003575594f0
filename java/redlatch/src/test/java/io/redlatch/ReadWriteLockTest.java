// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class ReadWriteLockTest extends ServerTest {
  @Test
  void tryToUpgradeDoesNotWait() throws Exception {
    NamedReadWriteLock lock = client().readWriteLock("x").with(LONG);
    Lease one = lock.readLock().acquire();
    try (Lease two = lock.readLock().acquire()) {
      assertFalse(one.tryUpgrade(), "others read");
      assertTrue(two.isHeld());
    }
    assertTrue(one.tryUpgrade());
    assertEquals(Lease.Mode.WRITE, one.mode());
    one.close();
  }
}

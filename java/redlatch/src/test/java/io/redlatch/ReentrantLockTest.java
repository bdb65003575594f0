// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class ReentrantLockTest extends ServerTest {
  @Test
  void threadMayTakeItAgain() throws Exception {
    Redlatch client = client();
    NamedLock lock = client.reentrantLock("x");
    Lease one = lock.acquire();
    Lease two = client.reentrantLock("x").tryAcquire().orElseThrow();
    assertEquals(1, one.holdCount());
    assertEquals(2, two.holdCount());
    assertEquals(2, client.inspect("x").holding());
    assertTrue(Wait.inThread(lock::tryAcquire).isEmpty(), "another thread is another owner");
    assertTrue(client().reentrantLock("x").tryAcquire().isEmpty(), "as is another client");
    assertFalse(one.release(), "it has another");
    assertTrue(Wait.inThread(lock::tryAcquire).isEmpty());
    assertTrue(two.release());
    assertTrue(Wait.inThread(() -> lock.acquire().release()));
    assertFalse(server.has("x"));
  }

  @Test
  void whoeverNamesTheSameOwnerIsTheSame() throws Exception {
    NamedLock mine = client().reentrantLock("x", "me");
    NamedLock mineElsewhere = client().reentrantLock("x", "me");
    NamedLock other = client().reentrantLock("x", "other");
    Lease one = mine.acquire();
    Lease two = Wait.inThread(() -> mineElsewhere.tryAcquire().orElseThrow());
    assertEquals(2, two.holdCount());
    assertTrue(other.tryAcquire().isEmpty());
    two.close();
    assertTrue(other.tryAcquire().isEmpty());
    one.close();
    other.tryAcquire().orElseThrow().close();
  }

  @Test
  void optionsDoNotChangeTheOwner() throws Exception {
    NamedLock lock = client().reentrantLock("x", "me");
    try (Lease one = lock.acquire();
        Lease two = lock.with(LONG).tryAcquire().orElseThrow()) {
      assertEquals(2, two.holdCount());
      assertTrue(one.isHeld());
    }
  }
}

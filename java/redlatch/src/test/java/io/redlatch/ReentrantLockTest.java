// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class ReentrantLockTest extends ServerTest {
  @Test
  void threadMayAcquireALockThatItHolds() throws Exception {
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
}

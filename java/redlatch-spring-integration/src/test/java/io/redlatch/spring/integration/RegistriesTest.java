// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch.spring.integration;

import io.redlatch.LockOptions;
import io.redlatch.Redlatch;
import io.redlatch.TestServer;
import io.redlatch.Wait;
import java.time.Duration;
import java.util.concurrent.locks.Lock;
import org.junit.jupiter.api.AfterEach;

/** A test with two registries, of two clients of one server. */
abstract class RegistriesTest {
  /** Soon renewed, and so soon known to be lost; but not lost when the machine is busy. */
  private static final LockOptions SHORT = LockOptions.DEFAULT.ttl(Duration.ofSeconds(1));

  final TestServer server = new TestServer();
  final Redlatch client = Redlatch.connect(server.url());
  final Redlatch otherClient = Redlatch.connect(server.url());
  final RedlatchLockRegistry registry =
      new RedlatchLockRegistry(key -> client.lock(key).with(SHORT));
  final RedlatchLockRegistry other = new RedlatchLockRegistry(otherClient);

  @AfterEach
  void stop() {
    client.close();
    otherClient.close();
    server.close();
  }

  long waiting(String key) {
    return otherClient.inspect(key).waiting();
  }

  /** Whether another thread gets the lock; it gives it back. */
  static boolean othersGet(RedlatchLockRegistry registry, String key) throws Exception {
    return Wait.inThread(
        () -> {
          Lock lock = registry.obtain(key);
          boolean isLocked = lock.tryLock();
          if (isLocked) {
            lock.unlock();
          }
          return isLocked;
        });
  }
}

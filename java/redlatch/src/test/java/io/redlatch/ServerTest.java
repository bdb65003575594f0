// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.Wait.Worker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.Lock;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.function.Executable;

/** A test with a server of its own, and clients of it. */
abstract class ServerTest {
  /** In which nothing of it ends by itself while a test runs. */
  static final LockOptions LONG = LockOptions.DEFAULT.ttl(Duration.ofMinutes(10));

  /** Soon renewed, and so soon known to be lost; but not lost when the machine is busy. */
  static final LockOptions SHORT = LockOptions.DEFAULT.ttl(Duration.ofSeconds(1));

  TestServer server;
  private final List<AutoCloseable> opened = new ArrayList<>();

  @BeforeEach
  void startServer() {
    server = new TestServer();
  }

  @AfterEach
  void stopServer() throws Exception {
    for (AutoCloseable one : opened) {
      one.close();
    }
    server.close();
  }

  /** It is closed at the end. */
  <T extends AutoCloseable> T closing(T one) {
    opened.add(0, one);
    return one;
  }

  Redlatch client() {
    return closing(Redlatch.connect(server.url()));
  }

  Redlatch client(ClientOptions options) {
    return closing(Redlatch.connect(server.url(), options, Duration.ZERO));
  }

  static long waiting(Redlatch client, String name) {
    return client.inspect(name).waiting();
  }

  /** Whether another thread gets the lock; it gives it back. */
  static boolean othersGet(Lock lock) throws Exception {
    Worker<Boolean> other =
        new Worker<>(
            () -> {
              boolean isLocked = lock.tryLock();
              if (isLocked) {
                lock.unlock();
              }
              return isLocked;
            });
    return other.end();
  }

  /** What waits. */
  interface Waiting {
    void within(Duration wait) throws Exception;
  }

  /** Its wait runs out, and is long enough for the server, which may be busy, to answer. */
  static NotAcquiredException assertTimesOut(Waiting work) {
    for (Duration wait = Duration.ofMillis(20); ; wait = wait.multipliedBy(2)) {
      long begin = System.nanoTime();
      Duration given = wait;
      RedlatchException failure =
          assertThrows(RedlatchException.class, () -> work.within(given));
      assertTrue(System.nanoTime() - begin >= wait.toNanos());
      if (failure.status() != Status.E_OUTCOME_UNKNOWN) {
        assertEquals(Status.TIMEOUT, failure.status(), failure::getMessage);
        return (NotAcquiredException) failure;
      }
    }
  }

  /** The failure of `work`, which has this status. */
  static RedlatchException assertFails(Status status, Executable work) {
    RedlatchException failure = assertThrows(RedlatchException.class, work);
    assertEquals(status, failure.status(), failure::getMessage);
    return failure;
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.Wait.Worker;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.logging.LogRecord;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A thread that waits for a lock that it holds itself does not do so in silence. */
class SelfWaitTest extends ServerTest {
  private static final String SELF = "lock 'x': a thread waits for a lock that it holds itself";

  private final Logger logger = Logger.getLogger("io.redlatch");
  private final List<LogRecord> records = new CopyOnWriteArrayList<>();

  @BeforeEach
  void watch() {
    Request.longWaitMs = 1;
    logger.setFilter(record -> !records.add(record));
  }

  @AfterEach
  void restore() {
    Request.longWaitMs = 10_000;
    logger.setFilter(null);
  }

  private long noticed() {
    return records.stream().filter(record -> record.getMessage().equals(SELF)).count();
  }

  @Test
  void selfWaitIsLoggedOnce() throws Exception {
    Redlatch client = client();
    Lease held = client.lock("x").acquire();
    Worker<Boolean> releasing =
        new Worker<>(
            () -> {
              Wait.until(() -> noticed() > 0);
              held.close();
              return true;
            });
    try (Lease next = client.lock("x").acquire()) {
      assertTrue(next.isHeld());
    }
    assertTrue(releasing.end());
    assertEquals(1, noticed());
    assertEquals(1, records.size());
    assertEquals(Level.WARNING, records.get(0).getLevel());
  }

  /** The line has the name that is held, which is not the first. */
  @Test
  void selfWaitForOneOfSeveralNamesIsLogged() throws Exception {
    Redlatch client = client();
    Lease held = client.lock("x").acquire();
    Worker<?> releasing =
        Worker.doing(
            () -> {
              Wait.until(() -> noticed() > 0);
              held.close();
            });
    try (Lease all = client.lockAll(LockName.write("w"), LockName.write("x")).acquire()) {
      assertTrue(all.isHeld());
    }
    releasing.end();
    assertEquals(1, noticed());
  }

  @Test
  void waitForAnotherThreadIsNoSelfWait() throws Exception {
    Redlatch client = client();
    Worker<Lease> waiter;
    try (Lease held = client.lock("x").acquire()) {
      waiter = new Worker<>(() -> client.lock("x").acquire());
      Wait.until(() -> waiting(client, "x") == 1);
      assertTrue(held.isHeld());
    }
    waiter.end().close();
    assertEquals(0, noticed());
  }
}

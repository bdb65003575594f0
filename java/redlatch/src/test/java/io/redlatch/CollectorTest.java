// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.Reference;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Whatever was dropped, and in whatever order it is found: what is held stays so, and is told. */
class CollectorTest extends ServerTest {
  private static final Logger LOGGER = Logger.getLogger("io.redlatch");
  private final List<String> messages = new CopyOnWriteArrayList<>();
  private volatile boolean fails;

  @BeforeEach
  void listen() {
    LOGGER.setFilter(
        record -> {
          messages.add(record.getMessage());
          if (fails) {
            throw new IllegalStateException("of the logger");
          }
          return false;
        });
  }

  @AfterEach
  void listenNoMore() {
    LOGGER.setFilter(null);
  }

  /** How often the collector has found a client, or a lease. */
  private long found(String what) {
    System.gc();
    return messages.stream().filter(message -> message.startsWith("a " + what)).count();
  }

  private static void drop(Lease lease) {
    assertTrue(lease.isHeld());
  }

  @Test
  void droppedLeaseStaysHeldUntilTheClientIsClosed() throws Exception {
    Redlatch client = client();
    for (int i = 0; i < 10; i++) {
      drop(client.lock("x" + i).with(SHORT).acquire());
      client.lock("released").acquire().close();
    }
    Wait.until(() -> found("lease of 'x") == 10);
    assertEquals(10, messages.size(), messages::toString);
    for (int i = 0; i < 10; i++) {
      server.awaitRenewal("x" + i);
    }
    client.close();
    for (int i = 0; i < 10; i++) {
      assertFalse(server.has("x" + i));
    }
  }

  @Test
  void clientIsNotCollectedBeforeItsLeases() throws Exception {
    NamedLock lock = Redlatch.connect(server.url()).lock("x");
    Lease lease = lock.acquire();
    CompletableFuture<Lease> waiting = lock.acquireAsync();
    for (int i = 0; i < 20; i++) {
      found("client");
    }
    assertEquals(List.of(), messages);
    lease.close();
    Lease next = Wait.get(waiting);
    next.checkHeld();
    assertTrue(next.release());
    Reference.reachabilityFence(lock);
  }

  /** Client and lease are dropped together: neither may be ended as if the other were not there. */
  @Test
  void droppedClientWithALeaseReleasesNothing() throws Exception {
    for (int i = 0; i < 10; i++) {
      drop(Redlatch.connect(server.url()).lock("x" + i).with(SHORT).acquire());
    }
    Wait.until(() -> found("client") == 10 && found("lease") == 10);
    // Nobody knows whether their work is over.
    for (int i = 0; i < 10; i++) {
      server.awaitRenewal("x" + i);
    }
  }

  @Test
  void droppedClientThatHoldsNothingIsEnded() throws Exception {
    String before = connections();
    for (int i = 0; i < 5; i++) {
      Redlatch.connect(server.url()).lock("x").acquire().close();
    }
    Wait.until(() -> found("client") == 5);
    Wait.until(() -> connections().equals(before));
    client().close();
    for (int i = 0; i < 5; i++) {
      found("client");
    }
    assertEquals(5, messages.size(), messages::toString);
  }

  @Test
  void loggerThatFailsKeepsNobodyFromEnding() throws Exception {
    String before = connections();
    List<String> told = new CopyOnWriteArrayList<>();
    Thread.setDefaultUncaughtExceptionHandler((thread, failure) -> told.add(failure.getMessage()));
    try {
      fails = true;
      Redlatch.connect(server.url());
      Wait.until(() -> found("client") == 1);
      Wait.until(() -> connections().equals(before));
    } finally {
      Thread.setDefaultUncaughtExceptionHandler(null);
    }
    assertEquals(List.of("of the logger"), told);
  }

  /** The one that asks is among them. */
  private String connections() {
    return server.ask(
        "EVAL",
        "return tonumber(string.match(redis.call('INFO'), 'connected_clients:(%d+)'))",
        "0");
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch.shedlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.ClientOptions;
import io.redlatch.Redlatch;
import io.redlatch.TestServer;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** A test with two nodes, which are two clients of one server. */
abstract class NodesTest {
  static {
    // With one processor or two, there is no common pool that could be full.
    System.setProperty("java.util.concurrent.ForkJoinPool.common.parallelism", "2");
  }

  static final Duration LONG = Duration.ofMinutes(10);

  final TestServer server = new TestServer();
  final Redlatch client = Redlatch.connect(server.url(), options(), LONG);
  final Redlatch otherClient = Redlatch.connect(server.url(), options(), LONG);
  final RedlatchLockProvider node = new RedlatchLockProvider(client);
  final RedlatchLockProvider other = new RedlatchLockProvider(otherClient);

  private final Logger logger = Logger.getLogger("io.redlatch");
  final Queue<LogRecord> logged = new ConcurrentLinkedQueue<>();

  ClientOptions options() {
    return ClientOptions.DEFAULT;
  }

  @BeforeEach
  void listen() {
    logger.setFilter(record -> !logged.add(record));
  }

  @AfterEach
  void stop() {
    logger.setFilter(null);
    client.close();
    otherClient.close();
    server.close();
  }

  static LockConfiguration task(String name, Duration atMost, Duration atLeast) {
    return new LockConfiguration(Instant.now(), name, atMost, atLeast);
  }

  static LockConfiguration task(String name) {
    return task(name, LONG, Duration.ZERO);
  }

  static boolean gets(LockProvider provider, String name) {
    Optional<SimpleLock> lock = provider.lock(task(name));
    lock.ifPresent(SimpleLock::unlock);
    return lock.isPresent();
  }

  void assertNothingLogged() {
    assertEquals(List.of(), logged.stream().map(LogRecord::getMessage).toList());
  }

  /** That it has taken so long since `beganNs`. */
  static void assertTook(Duration atLeast, long beganNs) {
    long tookNs = System.nanoTime() - beganNs;
    assertTrue(tookNs >= atLeast.toNanos(), () -> "only " + tookNs + " ns");
  }
}

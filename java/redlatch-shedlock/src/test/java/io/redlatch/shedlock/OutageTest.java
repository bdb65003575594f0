// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch.shedlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.ClientOptions;
import io.redlatch.Redlatch;
import io.redlatch.RedlatchException;
import io.redlatch.Wait;
import io.redlatch.Wait.Worker;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ForkJoinPool;
import java.util.logging.LogRecord;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.support.LockException;
import org.junit.jupiter.api.Test;

/** What tasks see of a server that does not answer. */
class OutageTest extends NodesTest {
  @Override
  ClientOptions options() {
    return ClientOptions.DEFAULT.with("command_timeout", "1s");
  }

  private SimpleLock lock(String name) {
    return node.lock(task(name)).orElseThrow();
  }

  @Test
  void outageKeepsLocksAndDoesNotFailAnUnlock() throws Exception {
    SimpleLock lock = lock("x");
    SimpleLock ending = lock("y");
    server.pause();
    Worker<?> looking = new Worker<>(() -> gets(other, "x"));
    ending.unlock();
    LockException failure = assertThrows(LockException.class, looking::end);
    assertInstanceOf(RedlatchException.class, failure.getCause());
    server.resume();
    assertFalse(gets(other, "x"));
    Wait.until(() -> gets(other, "y"));
    lock.unlock();
    assertTrue(gets(other, "x"));
  }

  /** Locks that wait for the server at the end of their lockAtLeastFor. */
  @Test
  void outageDoesNotBlockTheCommonPool() throws Exception {
    int threads = ForkJoinPool.getCommonPoolParallelism();
    assertEquals(2, threads);
    Duration soon = Duration.ofMillis(500);
    ClientOptions patient = ClientOptions.DEFAULT.with("command_timeout", "20s");
    try (Redlatch patientClient = Redlatch.connect(server.url(), patient, LONG)) {
      RedlatchLockProvider provider = new RedlatchLockProvider(patientClient);
      for (int i = 0; i < threads; i++) {
        provider.lock(task("x" + i, LONG, soon)).orElseThrow().unlock();
      }
      server.pause();
      long paused = System.nanoTime();
      Wait.until(() -> System.nanoTime() - paused > soon.toNanos());
      CountDownLatch isDone = new CountDownLatch(1);
      ForkJoinPool.commonPool().execute(isDone::countDown);
      isDone.await();
      assertNothingLogged();
      server.resume();
    }
  }

  @Test
  void unreachableServerIsReportedAndLogged() {
    SimpleLock lock = lock("x");
    node.lock(task("y", LONG, Duration.ofSeconds(2))).orElseThrow().unlock();
    server.kill();
    List<Worker<?>> calls =
        List.of(
            new Worker<>(() -> other.lock(task("z"))),
            new Worker<>(() -> lock.extend(LONG, Duration.ZERO)));
    for (Worker<?> call : calls) {
      LockException failure = assertThrows(LockException.class, call::end);
      RedlatchException cause = assertInstanceOf(RedlatchException.class, failure.getCause());
      assertTrue(cause.status().isRetryable() || cause.status().maybeApplied(), cause::toString);
    }
    lock.unlock();
    Wait.until(() -> logged.size() == 2);
    assertEquals(
        List.of(
            "a lock is kept for all its lockAtMostFor", "a release continues in the background"),
        logged.stream().map(LogRecord::getMessage).sorted().toList());
  }
}

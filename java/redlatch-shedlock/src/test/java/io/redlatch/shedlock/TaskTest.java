// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch.shedlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.Wait;
import io.redlatch.Wait.Worker;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import net.javacrumbs.shedlock.core.DefaultLockingTaskExecutor;
import net.javacrumbs.shedlock.core.LockAssert;
import net.javacrumbs.shedlock.core.LockExtender;
import net.javacrumbs.shedlock.core.LockingTaskExecutor;
import net.javacrumbs.shedlock.core.LockingTaskExecutor.TaskResult;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.support.KeepAliveLockProvider;
import org.junit.jupiter.api.Test;

/** Tasks that ShedLock runs. */
class TaskTest extends NodesTest {
  private final LockingTaskExecutor executor = new DefaultLockingTaskExecutor(node);
  private final LockingTaskExecutor otherExecutor = new DefaultLockingTaskExecutor(other);

  private static TaskResult<String> run(
      LockingTaskExecutor where, LockingTaskExecutor.TaskWithResult<String> what)
      throws Exception {
    try {
      return where.executeWithLock(what, task("x"));
    } catch (Exception | Error failure) {
      throw failure;
    } catch (Throwable other) {
      throw new AssertionError(other);
    }
  }

  @Test
  void oneNodeRunsTheTask() throws Exception {
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch over = new CountDownLatch(1);
    Worker<TaskResult<String>> worker =
        new Worker<>(
            () ->
                run(
                    executor,
                    () -> {
                      LockAssert.assertLocked();
                      running.countDown();
                      over.await();
                      return "done";
                    }));
    running.await();
    assertFalse(run(otherExecutor, () -> "too").wasExecuted());
    over.countDown();
    assertEquals("done", worker.end().getResult());
    assertEquals("too", run(otherExecutor, () -> "too").getResult());
  }

  @Test
  void taskThatFailsReleasesItsExtendedLock() throws Exception {
    Exception failure =
        assertThrows(
            InterruptedException.class,
            () ->
                run(
                    executor,
                    () -> {
                      LockExtender.extendActiveLock(LONG.multipliedBy(2), Duration.ZERO);
                      throw new InterruptedException(server.ask("PTTL", "x"));
                    }));
    assertTrue(Long.parseLong(failure.getMessage().substring(1)) > LONG.toMillis());
    assertFalse(server.has("x"));
  }

  /** ShedLock's least lockAtMostFor for it is 30 s: here it extends more often than after half. */
  private static final class Impatient extends ScheduledThreadPoolExecutor {
    Impatient() {
      super(1);
    }

    @Override
    public ScheduledFuture<?> scheduleAtFixedRate(
        Runnable command, long delay, long period, TimeUnit unit) {
      assertEquals(15_000, unit.toMillis(period));
      return super.scheduleAtFixedRate(command, 10, 10, TimeUnit.MILLISECONDS);
    }
  }

  private long leftMs() {
    return Long.parseLong(server.ask("PTTL", "x").substring(1));
  }

  @Test
  void keepAliveProviderExtendsTheLock() {
    Impatient timer = new Impatient();
    try {
      SimpleLock lock =
          new KeepAliveLockProvider(node, timer)
              .lock(task("x", Duration.ofSeconds(30), Duration.ZERO))
              .orElseThrow();
      for (int i = 0; i < 3; i++) {
        server.ask("PEXPIRE", "x", "20000");
        Wait.until(() -> leftMs() > 25_000);
      }
      assertFalse(gets(other, "x"));
      lock.unlock();
      assertFalse(server.has("x"));
      assertTrue(timer.getQueue().stream().allMatch(one -> ((ScheduledFuture<?>) one).isDone()));
    } finally {
      timer.shutdownNow();
    }
  }
}

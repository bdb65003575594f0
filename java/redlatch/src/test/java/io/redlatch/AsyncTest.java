// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;

class AsyncTest extends ServerTest {
  private static Throwable causeOf(CompletableFuture<?> future) {
    return assertThrows(ExecutionException.class, () -> Wait.get(future)).getCause();
  }

  @Test
  void futureCompletesWithTheLease() throws Exception {
    Redlatch client = client();
    Lease held = Wait.get(client.lock("x").acquireAsync());
    CompletableFuture<Lease> next = client.lock("x").acquireAsync();
    CompletableFuture<Long> fence = next.thenApply(Lease::fence);
    Wait.until(() -> waiting(client, "x") == 1);
    assertFalse(next.isDone());
    held.close();
    assertTrue(Wait.get(fence) > held.fence());
    assertTrue(next.get().release());
  }

  @Test
  void futureFailsWithTheExceptionOfAcquire() throws Exception {
    Redlatch client = client();
    try (Lease held = client.lock("x").acquire()) {
      Throwable late = causeOf(client.lock("x").acquireAsync(Duration.ofSeconds(1)));
      assertEquals(Status.TIMEOUT, assertInstanceOf(NotAcquiredException.class, late).status());
      Throwable busy = causeOf(client.lock("x").acquireAsync(Duration.ZERO));
      assertEquals(Status.BUSY, assertInstanceOf(NotAcquiredException.class, busy).status());
      Throwable wrong = causeOf(client.lock("").acquireAsync());
      assertEquals(Status.E_INVALID, assertInstanceOf(RedlatchException.class, wrong).status());
      assertTrue(held.isHeld());
    }
  }

  @Test
  void cancelLeavesTheQueue() throws Exception {
    Redlatch client = client();
    try (Lease held = client.lock("x").with(LONG).acquire()) {
      CompletableFuture<Lease> future = client.lock("x").acquireAsync();
      Wait.until(() -> waiting(client, "x") == 1);
      assertTrue(future.cancel(true));
      assertThrows(CancellationException.class, future::join);
      Wait.until(() -> waiting(client, "x") == 0);

      CompletableFuture<Lease> limited =
          client.lock("x").acquireAsync().orTimeout(10, TimeUnit.MILLISECONDS);
      assertInstanceOf(TimeoutException.class, causeOf(limited));
      Wait.until(() -> waiting(client, "x") == 0);
      assertTrue(held.isHeld());
    }
    assertFalse(server.has("x"));
  }

  /** A grant and a cancel cross: then nobody has the lock, and nothing is used that was freed. */
  @Test
  void grantsThatCrossACancelAreReleased() throws Exception {
    Redlatch client = client();
    ExecutorService cancelling = Executors.newFixedThreadPool(2);
    try {
      for (int i = 0; i < 500; i++) {
        Lease held = client.lock("x").acquire();
        CompletableFuture<Lease> future = client.lock("x").acquireAsync();
        cancelling.execute(() -> future.cancel(true));
        held.close();
        try {
          Wait.get(future).close();
        } catch (CancellationException cancelled) {
          assertTrue(future.isCancelled());
        }
      }
      client.lock("x").acquire(Duration.ofSeconds(Wait.PATIENCE_S)).close();
      Wait.until(() -> !server.has("x") && !server.hasQueue("x"));
    } finally {
      cancelling.shutdownNow();
    }
  }

  /** An executor may be busy for long, and may drop what it was given. */
  @Test
  void cancelReleasesALeaseThatTheExecutorHasNotDelivered() throws Exception {
    Redlatch client = client();
    Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();
    CompletableFuture<Lease> future =
        client.lock("x").with(LONG).acquireAsync(Duration.ofMinutes(1), tasks::add);
    Wait.until(() -> !tasks.isEmpty());
    assertTrue(server.has("x"));
    assertTrue(future.cancel(true));
    Wait.until(() -> !server.has("x"));
    tasks.remove().run();
    assertTrue(future.isCancelled());
  }

  @Test
  void dependentsRunInTheGivenExecutor() throws Exception {
    Redlatch client = client();
    ExecutorService executor = Executors.newSingleThreadExecutor(work -> new Thread(work, "mine"));
    try {
      CompletableFuture<String> name = new CompletableFuture<>();
      Lease held = client.lock("x").acquire();
      client
          .lock("x")
          .acquireAsync(Duration.ofMinutes(1), executor)
          .thenAccept(
              lease -> {
                lease.close();
                name.complete(Thread.currentThread().getName());
              });
      held.close();
      assertEquals("mine", Wait.get(name));
    } finally {
      executor.shutdown();
    }
    Lease held = client.lock("x").acquire();
    CompletableFuture<Lease> refused =
        client.lock("x").acquireAsync(Duration.ofMinutes(1), executor);
    held.close();
    assertInstanceOf(RejectedExecutionException.class, causeOf(refused));
    Wait.until(() -> !server.has("x"));
  }

  /** Whatever it does, and wherever: what it waits for may be something that is told later. */
  @Test
  void dependentsOfAFutureMayBlock() throws Exception {
    Redlatch client = client();
    NamedReadWriteLock x = client.readWriteLock("x");
    NamedLock y = client.lock("y");
    Lease first = x.writeLock().acquire();
    List<CompletableFuture<Lease>> readers = new ArrayList<>();
    for (int i = 0; i < ForkJoinPool.getCommonPoolParallelism() + 1; i++) {
      readers.add(x.readLock().acquireAsync());
    }
    readers.add(x.readLock().acquireAsync(Duration.ofMinutes(1), Runnable::run));
    List<CompletableFuture<Void>> waiting =
        readers.stream().map(one -> one.thenRun(() -> acquireAndClose(y))).toList();
    try (Lease held = y.acquire()) {
      first.close();
      // To get() one would have this thread run what depends on it.
      Wait.until(() -> readers.stream().allMatch(CompletableFuture::isDone));
      Wait.get(client.lock("z").acquireAsync()).close();
      assertTrue(held.isHeld());
    }
    for (CompletableFuture<Void> one : waiting) {
      Wait.get(one);
    }
  }

  private static void acquireAndClose(NamedLock lock) {
    lock.acquireUninterruptibly().close();
  }

  @Test
  void thousandsOfFuturesNeedNoThreads() throws Exception {
    Redlatch client = client();
    List<CompletableFuture<Lease>> futures = new ArrayList<>();
    Lease held = client.lock("x").acquire();
    int threads = Thread.activeCount();
    for (int i = 0; i < 3000; i++) {
      futures.add(client.lock("x").acquireAsync());
    }
    assertTrue(Thread.activeCount() <= threads + 1, "the pump may be new");
    held.close();
    long last = held.fence();
    for (CompletableFuture<Lease> future : futures) {
      try (Lease lease = Wait.get(future)) {
        assertTrue(lease.fence() > last);
        last = lease.fence();
      }
    }
  }
}

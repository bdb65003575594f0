// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.Wait.Worker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.Test;

class CloseTest extends ServerTest {
  @Test
  void closeReleasesAndEndsWaits() throws Exception {
    Redlatch client = client();
    Redlatch other = client();
    Lease held = client.lock("x").acquire();
    try (Lease elsewhere = other.lock("y").with(LONG).acquire()) {
      Worker<Lease> waiter = new Worker<>(() -> client.lock("y").acquire());
      CompletableFuture<Lease> future = client.lock("y").acquireAsync();
      Wait.until(() -> waiting(other, "y") == 1);
      Wait.until(() -> waiter.thread.getState() == Thread.State.WAITING);
      client.close();
      client.close();
      assertFails(Status.E_CLOSED, waiter::end);
      Throwable failure = assertThrows(CompletionException.class, future::join).getCause();
      assertEquals(Status.E_CLOSED, ((RedlatchException) failure).status());
      assertFalse(server.has("x"));
      assertEquals(Lease.State.RELEASED, held.state());
      held.close();
      assertFails(Status.E_CLOSED, () -> client.lock("z").tryAcquire());
      assertFails(Status.E_CLOSED, () -> client.inspect("z"));
      assertFails(Status.E_CLOSED, () -> client.connect(Duration.ZERO));
      assertTrue(elsewhere.isHeld());
    }
  }

  @Test
  void blockEndsTheLeaseAndThenTheClient() throws Exception {
    try (Redlatch client = Redlatch.connect(server.url());
        Lease lease = client.lock("x").acquire()) {
      assertTrue(server.has("x") && lease.isHeld());
    }
    assertFalse(server.has("x"));
  }

  @Test
  void anyOrderOfClosesWillDo() throws Exception {
    Redlatch client = client();
    Lease detached = client.lock("y").with(SHORT).acquire();
    detached.detach();
    detached.close();
    assertFails(Status.E_NOT_HELD, detached::release);
    Lease lease = client.lock("x").acquire();
    assertTrue(lease.release());
    lease.close();
    lease.close();
    Lease late = client.lock("x").acquire();
    client.close();
    late.close();
  }

  @Test
  void closesAtTheSameTimeAreOne() throws Exception {
    Redlatch client = client();
    for (int i = 0; i < 100; i++) {
      Lease lease = client.lock("x").acquire();
      List<Worker<Integer>> workers = new ArrayList<>();
      for (int k = 0; k < 3; k++) {
        workers.add(
            new Worker<>(
                () -> {
                  lease.close();
                  return 0;
                }));
      }
      for (Worker<Integer> worker : workers) {
        worker.end();
      }
    }
  }

  @Test
  void closeDoesNotWaitForASilentServerForLong() throws Exception {
    Redlatch client = client(ClientOptions.DEFAULT.with("timeout", "100ms"));
    Lease lease = client.lock("x").acquire();
    server.pause();
    RedlatchException failure = assertFails(Status.E_OUTCOME_UNKNOWN, lease::close);
    assertTrue(failure.status().maybeApplied());
    lease.close();
    client.close();
    server.resume();
  }
}

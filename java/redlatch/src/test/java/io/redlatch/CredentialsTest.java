// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class CredentialsTest extends ServerTest {
  private void rotate(String password) {
    server.ask("ACL", "SETUSER", "app", "reset", "on", ">" + password, "~*", "&*", "+@all");
  }

  @Test
  void leaseOutlivesItsPassword() throws Exception {
    AtomicInteger calls = new AtomicInteger();
    Redlatch client = closing(Redlatch.open(server.url()));
    client.credentialsFrom(
        () -> {
          String password = "S3cret" + calls.incrementAndGet();
          rotate(password);
          return new Credentials("app", password, Duration.ofSeconds(1));
        });
    client.connect(Duration.ofSeconds(20));
    try (Lease lease = client.lock("outlives").with(LONG).acquire()) {
      Wait.until(() -> calls.get() >= 3);
      lease.extend(Duration.ofMinutes(1));
      assertTrue(lease.isHeld());
    }
  }

  @Test
  void anExceptionIsTheReason() {
    Redlatch client = closing(Redlatch.open(server.url()));
    client.credentialsFrom(
        () -> {
          throw new IOException("vault is sealed");
        });
    RedlatchException failure =
        assertThrows(RedlatchException.class, () -> client.connect(Duration.ZERO));
    assertEquals(Status.E_UNAVAILABLE, failure.status());
    assertTrue(failure.getMessage().contains("vault is sealed"), failure.getMessage());
  }

  @Test
  void wrongAnswersAreNamedButNotShown() {
    Redlatch client = closing(Redlatch.open(server.url()));
    client.credentialsFrom(() -> new Credentials("app", "S3cret", Duration.ofMillis(5)));
    RedlatchException failure =
        assertThrows(RedlatchException.class, () -> client.connect(Duration.ZERO));
    assertTrue(failure.getMessage().contains("valid_ms must be"), failure.getMessage());
    assertFalse(failure.getMessage().contains("S3cret"), failure.getMessage());
    assertFalse(new Credentials("app", "S3cret").toString().contains("S3cret"));
  }

  @Test
  void aClientIsClosedWhileItsProviderIsAsked() throws Exception {
    CountDownLatch isAsked = new CountDownLatch(1);
    CountDownLatch isClosed = new CountDownLatch(1);
    Redlatch client = Redlatch.open(server.url());
    client.credentialsFrom(
        () -> {
          isAsked.countDown();
          isClosed.await();
          return new Credentials("app", "S3cret");
        });
    Thread connecting = new Thread(() -> tryToConnect(client));
    connecting.start();
    isAsked.await();
    client.close();
    connecting.join();
    isClosed.countDown();
  }

  private static void tryToConnect(Redlatch client) {
    assertThrows(RedlatchException.class, () -> client.connect(Duration.ofSeconds(20)));
  }
}

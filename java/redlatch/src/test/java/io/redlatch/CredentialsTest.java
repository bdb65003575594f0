// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

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

  /** Not connected yet. */
  private Redlatch fetching(CredentialsProvider provider) {
    Redlatch client = closing(Redlatch.open(server.url()));
    client.credentialsFrom(provider);
    return client;
  }

  @Test
  void exceptionOfTheProviderIsInTheError() {
    String reason =
        reasonFor(
            () -> {
              throw new IOException("vault is sealed");
            });
    assertTrue(reason.contains("vault is sealed"), reason);
  }

  /** The message of the failure to connect with the first answer of this provider. */
  private String reasonFor(CredentialsProvider provider) {
    Redlatch client = fetching(provider);
    RedlatchException failure =
        assertFails(Status.E_UNAVAILABLE, () -> client.connect(Duration.ZERO));
    assertFalse(failure.getMessage().contains("S3cret"), failure.getMessage());
    return failure.getMessage();
  }

  @Test
  void expiredCredentialsAreRefused() {
    for (long nanos : new long[] {0, -1, -500_000, -1_000_000, -2_000_000, 999_999_999}) {
      Duration valid = Duration.ofNanos(nanos);
      String reason = reasonFor(() -> new Credentials("app", "S3cret", valid));
      String allowed = "valid must be PT1S or more, or NO_END (got " + valid + ")";
      assertTrue(reason.endsWith(allowed), reason);
    }
  }

  @Test
  void errorsNameInvalidCredentialsWithoutShowingThem() {
    String empty = reasonFor(() -> new Credentials("app", ""));
    assertTrue(empty.contains("password must be 1 to"), empty);
    String none = reasonFor(() -> null);
    assertTrue(none.endsWith("credentials() must not return null"), none);
    String nobody = reasonFor(() -> new Credentials(null, "S3cret"));
    assertTrue(nobody.endsWith("user must not be null"), nobody);
    assertFalse(new Credentials("app", "S3cret").toString().contains("S3cret"));
  }

  /** Its text fails as well. */
  private static final class Wordless extends Error {
    private static final long serialVersionUID = 1;

    @Override
    public String toString() {
      throw new IllegalStateException();
    }
  }

  @Test
  void anyThrowableOfTheProviderLeavesTheRenewalRunning() throws Exception {
    AtomicInteger calls = new AtomicInteger();
    rotate("S3cret");
    Redlatch client =
        fetching(
            () -> {
              if (calls.incrementAndGet() == 2) {
                throw new Wordless();
              }
              return new Credentials("app", "S3cret", Duration.ofSeconds(1));
            });
    client.connect(Duration.ofSeconds(20));
    Wait.until(() -> calls.get() >= 3);
  }

  @Test
  void clientCanBeClosedWhileItsProviderRuns() throws Exception {
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

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What is wrong is named, with what is allowed. */
class BadInputTest {
  private static void assertSays(String text, RedlatchException failure) {
    assertEquals(Status.E_INVALID, failure.status(), failure::getMessage);
    assertTrue(failure.getMessage().contains(text), failure::getMessage);
  }

  @Test
  void optionsOfALock() {
    LockOptions options = LockOptions.DEFAULT;
    Map<String, LockOptions> wrong =
        Map.of(
            "ttl(PT0.009S): allowed are 10 ms to 7 days", options.ttl(Duration.ofMillis(9)),
            "ttl(PT-0.001S): allowed", options.ttl(Duration.ofMillis(-1)),
            "ttl(PT169H): allowed", options.ttl(Duration.ofHours(169)),
            "maxHold(PT-1S): allowed are 0 to 7 days", options.maxHold(Duration.ofSeconds(-1)),
            "localBurst(32): allowed are 0 to 31", options.localBurst(32),
            "foreignBurst(-1): allowed are 0 to 1000000", options.foreignBurst(-1),
            "foreignWindow(PT0S): allowed are 1 ms to a minute",
                options.foreignWindow(Duration.ZERO),
            "label of 257 bytes: allowed are 0 to 256", options.label("x".repeat(257)),
            "owner of 0 bytes: allowed are 1 to 256", options.owner(new byte[0]));
    try (Redlatch client = Redlatch.open("unix:///nowhere")) {
      wrong.forEach(
          (text, given) -> {
            NamedLock lock = client.lock("x").with(given);
            assertSays(text, assertThrows(RedlatchException.class, lock::tryAcquire));
            assertSays(text, assertThrows(RedlatchException.class, lock::acquireAsync));
          });
      NamedLock lock = client.reentrantLock("x", "");
      assertSays("owner of 0 bytes", assertThrows(RedlatchException.class, lock::tryAcquire));
      lock = client.lock("");
      assertSays("acquire: ", assertThrows(RedlatchException.class, lock::tryAcquire));
    }
  }

  @Test
  void urlsAndOptionsOfAClient() {
    for (String url : List.of("", "http://x", "redis://h?tiemout=1s", "\0")) {
      assertSays("open: ", assertThrows(RedlatchException.class, () -> Redlatch.open(url)));
    }
    ClientOptions wrong = ClientOptions.DEFAULT.with("tiemout", "1s");
    assertSays(
        "timeout", assertThrows(RedlatchException.class, () -> Redlatch.open("redis://h", wrong)));
    ClientOptions much = ClientOptions.DEFAULT.with("timeout", "2h");
    assertSays(
        "1h", assertThrows(RedlatchException.class, () -> Redlatch.open("redis://h", much)));
  }

  @Test
  void serversOfARedlock() {
    ClientOptions options = ClientOptions.DEFAULT;
    for (List<String> urls : List.of(List.<String>of(), List.of("redis://a", "redis://b"))) {
      assertSays("", assertThrows(RedlatchException.class, () -> Redlock.open(urls, options)));
    }
    List<String> same = List.of("redis://a", "redis://a", "redis://b");
    assertSays("", assertThrows(RedlatchException.class, () -> Redlock.open(same, options)));
  }

  @Test
  void passwordsAreNotShown() {
    try (Redlatch client = Redlatch.open("redis://user:secret@h")) {
      assertEquals("Redlatch[redis://user:***@h]", client.toString());
      assertEquals("", client.option("password"));
    }
    List<String> urls = List.of("redis://:secret@a", "redis://:secret@b", "redis://:secret@c");
    try (Redlock redlock = Redlock.open(urls, ClientOptions.DEFAULT)) {
      assertFalse(redlock.toString().contains("secret"), redlock::toString);
    }
  }
}

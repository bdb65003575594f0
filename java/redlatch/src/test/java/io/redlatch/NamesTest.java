// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

/** Names and other text are the same bytes on the server as from every other language. */
class NamesTest extends ServerTest {
  private boolean has(byte[] key) {
    return server.ask(List.of("EXISTS".getBytes(UTF_8), key)).equals(":1");
  }

  @Test
  void namesAreSentAsUtf8() throws Exception {
    Redlatch client = client();
    // As a String, SWIG would make six bytes of the lock, and two of the NUL.
    for (String name : List.of("\uD83D\uDD12", "a\0b", "\0", "café", "{a}", " ", "\n")) {
      try (Lease lease = client.lock(name).acquire()) {
        assertTrue(has(name.getBytes(UTF_8)), name);
        assertEquals(name, lease.name());
        assertEquals(name, client.inspect(name).name());
        assertEquals(lease.token(), client.inspect(name).holders().get(0).token());
      }
    }
    try (Lease lease = client.lock("\uD83D\uDD12").acquire()) {
      assertTrue(has(new byte[] {(byte) 0xf0, (byte) 0x9f, (byte) 0x94, (byte) 0x92}));
      assertTrue(lease.isHeld());
    }
  }

  @Test
  void namesMayBeAnyBytes() throws Exception {
    Redlatch client = client();
    byte[] all = new byte[256];
    for (int i = 0; i < all.length; i++) {
      all[i] = (byte) i;
    }
    for (byte[] name : List.of(all, new byte[] {(byte) 0xff}, new byte[] {0})) {
      byte[] given = name.clone();
      NamedLock lock = client.lock(given);
      given[0]++;
      try (Lease lease = lock.acquire()) {
        assertTrue(has(name), "what is done to the array later is not done to the name");
        LockInfo found = client.list("").iterator().next();
        assertArrayEquals(name, found.nameBytes());
        assertEquals(1, client.inspect(found.nameBytes()).holding());
        assertTrue(lease.isHeld());
      }
    }
  }

  @Test
  void namespaceHolderLabelAndOwnerMayBeAnyText() throws Exception {
    ClientOptions options = ClientOptions.DEFAULT.namespace("\uD83D\uDD12:").with("holder", "été");
    Redlatch client = client(options);
    assertEquals("\uD83D\uDD12:", client.option("namespace"));
    try (Lease lease = client.lock("x").with(LONG.label("a\0b\uD83D\uDD12")).acquire()) {
      assertTrue(has("\uD83D\uDD12:x".getBytes(UTF_8)));
      Wait.until(() -> !client.inspect("x").holders().get(0).label().isEmpty());
      LockInfo.Holder holder = client.inspect("x").holders().get(0);
      assertEquals("a\0b\uD83D\uDD12", holder.label());
      assertEquals("été", holder.who());
      assertTrue(lease.isHeld());
    }
    byte[] owner = "\0ÿ".getBytes(ISO_8859_1);
    NamedLock mine = client.reentrantLock("y".getBytes(UTF_8), owner);
    try (Lease one = mine.acquire();
        Lease two = mine.acquire()) {
      assertEquals(2, two.holdCount());
      assertEquals(1, one.holdCount());
    }
    try (Lease lease = client.reentrantLock("z", "me").acquire()) {
      assertEquals("me", client.inspect("z").owner());
      assertTrue(lease.isHeld());
    }
  }

  /** Two names that are not text must not become the same lock. */
  @Test
  void nameWithHalfASurrogatePairIsRefused() {
    Redlatch client = client();
    for (String half : List.of("a\uD83D", "\uDD12", "\uDD12\uD83D")) {
      RedlatchException failure = assertFails(Status.E_INVALID, () -> client.lock(half));
      assertTrue(
          failure.getMessage().endsWith("(got half of a surrogate pair)"), failure::getMessage);
    }
  }
}

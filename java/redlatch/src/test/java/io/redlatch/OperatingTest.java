// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/** Looking and operating. */
class OperatingTest extends ServerTest {
  private static Set<String> names(Iterable<LockInfo> locks) {
    Set<String> names = new TreeSet<>();
    locks.forEach(lock -> names.add(lock.name()));
    return names;
  }

  @Test
  void clientKnowsItsOptionsAndItsServer() throws Exception {
    Redlatch client = client(ClientOptions.DEFAULT.with("command_timeout", "3s"));
    assertEquals("3000ms", client.option("command_timeout"));
    client.lock("x").acquire().close();
    NodeInfo node = client.info().get(0);
    assertEquals(NodeInfo.State.UP, node.state(), node::toString);
    assertTrue(node.votes() && node.role() == NodeInfo.Role.PRIMARY, node::toString);
    assertTrue(!node.version().isEmpty(), node::toString);
    assertTrue(node.clockDifference().isPresent(), node::toString);
  }

  @Test
  void valuesAndLabelsMayBeAnyBytes() throws Exception {
    Redlatch client = client();
    byte[] value = {(byte) 0xff, 0, 'x'};
    server.ask("EVAL", "return redis.call('SET', 'theirs', '\\255\\0x')", "0");
    byte[] found = client.inspect("theirs").holders().get(0).tokenBytes();
    assertArrayEquals(value, found);
    client.forceRelease("theirs".getBytes(UTF_8), found);
    try (Lease held = client.lock("x").with(LONG.label(value)).acquire()) {
      Wait.until(() -> client.inspect("x").holders().get(0).labelBytes().length > 0);
      assertArrayEquals(value, client.inspect("x").holders().get(0).labelBytes());
      assertTrue(held.isHeld());
    }
  }

  @Test
  void listFindsHeldLocks() throws Exception {
    Redlatch client = client();
    for (int i = 0; i < 30; i++) {
      client.lock("n" + i).acquire();
    }
    assertEquals(30, names(client.list("")).size());
    assertEquals(Set.of("n10", "n11"), names(client.list("n1[01]")));
    Iterator<LockInfo> locks = client.list("n7").iterator();
    assertTrue(locks.hasNext() && locks.hasNext());
    assertEquals("n7", locks.next().name());
    assertFalse(locks.hasNext());
    assertThrows(NoSuchElementException.class, locks::next);
    server.kill();
    RedlatchException failure =
        assertThrows(RedlatchException.class, () -> names(client.list("")));
    assertTrue(failure.status().isRetryable(), failure::getMessage);
  }

  @Test
  void forceReleaseRefusesKeysThatAreNotRedlatchLocks() throws Exception {
    Redlatch client = client();
    for (String[] command :
        new String[][] {
          {"SET", "x", "5"},
          {"SET", "x", "0f3a", "EX", "600"},
          {"SET", "x", "6ecf2c43d7b811ef8d3d0242ac120002", "PX", "600000"},
          {"LPUSH", "x", "job"},
          {"HSET", "x", "a", "1", "b", "x"},
          {"ZADD", "x", "1", "a"},
        }) {
      server.ask(command);
      String type = server.ask("TYPE", "x").substring(1);
      RedlatchException failure =
          assertThrows(RedlatchException.class, () -> client.forceRelease("x"));
      assertEquals(Status.E_WRONG_TYPE, failure.status(), failure::getMessage);
      String said = failure.getMessage();
      assertTrue(said.contains("'x' must be a lock of redlatch (got a " + type), said);
      assertTrue(server.has("x"), said);
      if (command[0].equals("SET")) {
        client.forceReleaseAny("x");
        assertFalse(server.has("x"), said);
      } else {
        server.ask("DEL", "x");
      }
    }
    assertFails(Status.E_NOT_HELD, () -> client.forceReleaseAny("x"));
  }

  @Test
  void forceReleaseRemovesLocksOfEveryKind() throws Exception {
    Redlatch client = client();
    NamedLock reader = client.readWriteLock("x").readLock();
    NamedLock reentrant = client.reentrantLock("x", "me");
    LockOptions hash = LockOptions.DEFAULT.format(LockOptions.Format.HASH);
    LockOptions shared = LockOptions.DEFAULT.format(LockOptions.Format.HASH_RW);
    List<List<NamedLock>> kinds =
        List.of(
            List.of(client.lock("x")),
            List.of(client.lock("x").with(hash)),
            List.of(reader),
            List.of(reader, reader),
            List.of(reader.with(shared)),
            List.of(reentrant, reentrant));
    for (List<NamedLock> locks : kinds) {
      List<Lease> held = new ArrayList<>();
      for (NamedLock lock : locks) {
        held.add(lock.acquire());
      }
      client.forceRelease("x");
      assertFalse(server.has("x"));
      for (Lease lease : held) {
        assertThrows(LockLostException.class, lease::release);
      }
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** What is wrong is named, with what is allowed. */
class BadInputTest {
  private static void assertSays(String text, RedlatchException failure) {
    assertEquals(Status.E_INVALID, failure.status(), failure::getMessage);
    assertTrue(failure.getMessage().contains(text), failure::getMessage);
  }

  @Test
  void invalidLockOptionsAreRefused() {
    LockOptions options = LockOptions.DEFAULT;
    Map<String, LockOptions> wrong =
        Map.of(
            "option 'ttl' must be 10 ms to 7 days (got '9ms')", options.ttl(Duration.ofMillis(9)),
            "option 'ttl' must be 10 ms to 7 days (got '-1ms')", options.ttl(Duration.ofMillis(-1)),
            "(got '30ns')", options.ttl(Duration.ofNanos(30)),
            "(got '608400000ms')", options.ttl(Duration.ofHours(169)),
            "'max_hold' must be 0 or 1 ms to 7 days", options.maxHold(Duration.ofSeconds(-1)),
            "'max_local_handoffs' must be 0 to 31 (got '32')", options.maxLocalHandoffs(32),
            "option 'yield_every' must be 0 to 1000000", options.yieldEvery(-1),
            "option 'yield_for' must be 1 ms to 1 minute", options.yieldFor(Duration.ZERO),
            "'label' must be at most 256 bytes (got 257 bytes)", options.label("x".repeat(257)),
            "option 'owner' must be 1 to 256 bytes (got 0 bytes)", options.owner(new byte[0]));
    try (Redlatch client = Redlatch.open("unix:///nowhere")) {
      wrong.forEach(
          (text, given) -> {
            NamedLock lock = client.lock("x").with(given);
            assertSays(text, assertThrows(RedlatchException.class, lock::tryAcquire));
            Executable later = () -> Wait.get(lock.acquireAsync());
            Throwable cause = assertThrows(ExecutionException.class, later).getCause();
            assertSays(text, assertInstanceOf(RedlatchException.class, cause));
          });
      NamedLock lock = client.reentrantLock("x", "");
      assertSays("must be 1 to 256 bytes", assertThrows(RedlatchException.class, lock::tryAcquire));
      lock = client.lock("");
      assertSays("acquire: ", assertThrows(RedlatchException.class, lock::tryAcquire));
    }
  }

  @Test
  void invalidUrlsAndClientOptionsAreRefused() {
    for (String url : List.of("", "http://x", "redis://h?comand_timeout=1s", "\0")) {
      assertSays("open: ", assertThrows(RedlatchException.class, () -> Redlatch.open(url)));
    }
    ClientOptions much = ClientOptions.DEFAULT.with("command_timeout", "2h");
    assertSays(
        "1 hour", assertThrows(RedlatchException.class, () -> Redlatch.open("redis://h", much)));
  }

  @Test
  void unknownOptionsAreRefusedAtOnce() {
    ClientOptions client = ClientOptions.DEFAULT;
    LockOptions lock = LockOptions.DEFAULT;
    Map<String, Executable> wrong =
        Map.of(
            "open: unknown option 'comand_timeout' (did you mean 'command_timeout'?)",
            () -> client.with("comand_timeout", "1s"),
            "open: unknown option 'ttl': it is an option of an acquisition",
            () -> client.with("ttl", "1s"),
            "acquire: unknown option 'tll' (did you mean 'ttl'?)",
            () -> lock.with("tll", "1s"),
            "acquire: unknown option 'holder': it is an option of a client",
            () -> lock.with("holder", new byte[1]));
    wrong.forEach((says, call) -> assertSays(says, assertThrows(RedlatchException.class, call)));
  }

  @Test
  void negativeWaitsAreRefused() {
    Duration negative = Duration.ofMillis(-1);
    try (Redlatch client = Redlatch.open("unix:///nowhere")) {
      NamedLock lock = client.lock("x");
      for (Executable call :
          List.<Executable>of(
              () -> lock.acquire(negative),
              () -> lock.tryAcquire(negative),
              () -> lock.acquireAsync(negative),
              () -> client.check(negative),
              () -> client.connect(negative))) {
        assertSays(
            "wait must be 0 or more (got -1ms)", assertThrows(RedlatchException.class, call));
      }
    }
  }

  @Test
  void optionsAreShownWithoutSecrets() {
    assertEquals("ClientOptions[]", ClientOptions.DEFAULT.toString());
    assertEquals("LockOptions[]", LockOptions.DEFAULT.toString());
    ClientOptions client =
        ClientOptions.DEFAULT
            .namespace("app:")
            .with("password", "canary")
            .with("password_file", "canary")
            .with("tls_key", "canary")
            .with("sentinel_password", "canary")
            .with("tls_sni", "redis://:canary@h")
            .with("holder", "two words")
            .fromEnv();
    assertEquals(
        "ClientOptions[namespace=app:, password=***, password_file=***, tls_key=***,"
            + " sentinel_password=***, tls_sni=***, holder='two words', from the environment]",
        client.toString());
    assertEquals(
        "LockOptions[ttl=30000ms, label='a\\x0ab', renew=no]",
        LockOptions.DEFAULT
            .ttl(Duration.ofSeconds(9))
            .label("a\nb")
            .renew(false)
            .ttl(Duration.ofSeconds(30))
            .toString());
  }

  @Test
  void invalidServerListsOfARedlockAreRefused() {
    ClientOptions options = ClientOptions.DEFAULT;
    Map<List<String>, String> wrong =
        Map.of(
            List.of(), "",
            List.of("redis://a", "redis://b"), "",
            List.of("redis://a", "redis://a", "redis://b"), "",
            List.of("redis://a", "", "redis://b", "", "redis://c"), "URL 2 must not be empty",
            List.of("redis://a", "redis://b", "redis://c", ""), "URL 4 must not be empty");
    wrong.forEach(
        (urls, text) ->
            assertSays(
                text, assertThrows(RedlatchException.class, () -> Redlock.open(urls, options))));
    // One that the environment names must not be taken in its place.
    Executable empty = () -> Redlock.open(List.of(""), options.fromEnv());
    assertSays("URL 1 must not be empty", assertThrows(RedlatchException.class, empty));
  }

  private static void assertNames(String what, Executable call) {
    NullPointerException failure = assertThrows(NullPointerException.class, call);
    assertEquals(what + " must not be null", failure.getMessage());
  }

  @Test
  void nullArgumentsAreNamed() {
    ClientOptions options = ClientOptions.DEFAULT;
    assertNames("url", () -> Redlatch.open(null));
    assertNames("options", () -> Redlatch.open("redis://h", null));
    assertNames("urls", () -> Redlock.open(null, options));
    assertNames("a URL of the list", () -> Redlock.open(Arrays.asList("redis://a", null), options));
    assertNames("value", () -> options.with("command_timeout", null));
    assertNames("name", () -> LockName.read((String) null));
    assertNames("name", () -> LockName.write((byte[]) null));
    try (Redlatch client = Redlatch.open("unix:///nowhere")) {
      assertNames("name", () -> client.lock((String) null));
      assertNames("name", () -> client.lock((byte[]) null));
      assertNames("name", () -> client.readWriteLock((String) null));
      assertNames("name", () -> client.readWriteLock((byte[]) null));
      assertNames("name", () -> client.reentrantLock((String) null));
      assertNames("name", () -> client.semaphore((String) null, 3));
      assertNames("name", () -> client.semaphore((byte[]) null, 3));
      assertNames("options", () -> client.semaphore("x", 3).with(null));
      assertNames("token", () -> client.semaphore("x", 3).attach(1, null));
      assertNames("unit", () -> client.semaphore("x", 3).tryAcquire(1, 1, null));
      assertNames("unit", () -> client.lock("x").tryAcquire(1, null));
      assertNames("names", () -> client.lockAll((LockName[]) null));
      assertNames("names", () -> client.lockAll((List<LockName>) null));
      assertNames("a name of the list", () -> client.lockAll(LockName.read("x"), null));
      assertNames("path", () -> client.lockPath((String) null));
      assertNames("path", () -> client.lockPath((byte[]) null));
      assertNames("owner", () -> client.reentrantLock("x", null));
      assertNames("name", () -> client.inspect((String) null));
      assertNames("name", () -> client.inspect((byte[]) null));
      assertNames("token", () -> client.attach("x", null));
      assertNames("pattern", () -> client.list(null));
      assertNames("name", () -> client.forceRelease((String) null));
      assertNames("name", () -> client.forceReleaseAny((String) null));
      assertNames("token", () -> client.forceRelease(new byte[1], null));
      assertNames("name", () -> client.option(null));
      assertNames("duration", () -> client.lock("x").acquire(null));
      assertNames("duration", () -> client.connect((Duration) null));
      assertNames("options", () -> client.lock("x").with(null));
      assertNames("options", () -> client.readWriteLock("x").with(null));
      assertNames("work", () -> client.lock("x").call(null));
      assertNames("name", () -> client.once((String) null, Duration.ZERO, lease -> {}));
      assertNames("duration", () -> client.once("x", null, lease -> {}));
      assertNames("action", () -> client.once("x", Duration.ZERO, null));
      assertNames("options", () -> client.once("x", Duration.ZERO, null, lease -> {}));
      assertNames("key", () -> client.singleFlight(null, Duration.ZERO, () -> null));
      assertNames("duration", () -> client.singleFlight("x", null, () -> null));
      assertNames("work", () -> client.singleFlight("x", Duration.ZERO, null));
      assertNames("options", () -> client.singleFlight("x", Duration.ZERO, null, () -> null));
      assertNames("name", () -> client.onceForget((String) null));
      assertNames("name", () -> client.onceForget((byte[]) null));
      assertNames("executor", () -> client.lock("x").acquireAsync(Duration.ZERO, null));
      assertNames("duration", () -> LockOptions.DEFAULT.ttl(null));
      assertNames("label", () -> LockOptions.DEFAULT.label((String) null));
      assertNames("owner", () -> LockOptions.DEFAULT.owner((String) null));
      assertNames("format", () -> LockOptions.DEFAULT.format(null));
      assertNames("key", () -> OnceOptions.DEFAULT.key((String) null));
      assertNames("key", () -> OnceOptions.DEFAULT.key((byte[]) null));
      assertNames("options", () -> OnceOptions.DEFAULT.with(null));
      assertNames("duration", () -> OnceOptions.DEFAULT.wait(null));
    }
  }

  @Test
  void longNamesAreCutInMessages() {
    try (Redlatch client = Redlatch.open("unix:///nowhere")) {
      String name = "x".repeat(10_000);
      NamedLock lock = client.lock(name);
      for (Executable call :
          List.<Executable>of(
              lock::tryAcquire,
              lock.asLock()::unlock,
              () -> client.inspect(name),
              () -> client.attach(name, "y"))) {
        Exception failure = assertThrows(RuntimeException.class, call);
        assertTrue(failure.getMessage().length() < 300, failure::getMessage);
      }
    }
  }

  @Test
  void errorsContainNoPassword() {
    for (String url :
        List.of(
            "redis://h?db=1;password=canary", "redis://:canary\uD83D@h", "canary")) {
      for (Executable call :
          List.<Executable>of(
              () -> Redlatch.open(url),
              () -> Redlock.open(List.of("redis://a", url, "redis://b"), ClientOptions.DEFAULT),
              () ->
                  Redlatch.open("redis://h", ClientOptions.DEFAULT.with("tls_sni", url + ";@")))) {
        RedlatchException failure = assertThrows(RedlatchException.class, call);
        assertEquals(Status.E_INVALID, failure.status(), url);
        assertFalse(failure.getMessage().contains("canary"), failure::getMessage);
      }
    }
  }

  @Test
  void toStringContainsNoPassword() {
    try (Redlatch client = Redlatch.open("redis://user:secret@h")) {
      assertEquals("Redlatch[redis://user:***@h]", client.toString());
      assertEquals("", client.option("password"));
    }
    List<String> urls = List.of("redis://:secret@a", "redis://:secret@b", "redis://:secret@c");
    try (Redlock redlock = Redlock.open(urls, ClientOptions.DEFAULT)) {
      assertFalse(redlock.toString().contains("secret"), redlock::toString);
    }
  }

  @Test
  void nullArgumentsOfElectionsAreNamed() {
    try (Redlatch client = Redlatch.open("unix:///nowhere")) {
      assertNames("name", () -> client.election((String) null));
      assertNames("name", () -> client.election((byte[]) null));
      assertNames("id", () -> client.election("x").id(null));
      assertNames("options", () -> client.election("x").with(null));
      assertNames("duration", () -> client.election("x").campaign(null));
      assertNames("action", () -> client.election("x").observe(null));
      assertNames("onElected", () -> client.election("x").elector().onElected(null));
      assertNames("onRevoked", () -> client.election("x").elector().onRevoked(null));
      assertNames("onNewLeader", () -> client.election("x").elector().onNewLeader(null));
      assertNames("name", () -> client.resign((String) null, ""));
      assertNames("reason", () -> client.resign("x", null));
    }
  }

  @Test
  void nullArgumentsOfRecallsAreNamed() {
    try (Redlatch client = Redlatch.open("unix:///nowhere")) {
      assertNames("name", () -> client.recall((String) null, ""));
      assertNames("name", () -> client.recall((byte[]) null, ""));
      assertNames("reason", () -> client.recall("x", null));
    }
  }
}

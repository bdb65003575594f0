// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.Wait.Worker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Lock;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

class LockAllTest extends ServerTest {
  private static final int CALLERS = 64;
  private static final int NAMES = 5;
  private static final int TURNS = 5;

  private static final Duration HOUR = Duration.ofHours(1);

  private static NamedLock both(Redlatch client) {
    return client.lockAll(LockName.write("b"), LockName.write("a"));
  }

  private static boolean isFree(Redlatch client, String name) {
    LockInfo info = client.inspect(name);
    return info.holding() == 0 && info.waiting() == 0;
  }

  /** Nothing is left: no holder, and no waiter. */
  private void awaitFree(String... names) {
    Redlatch client = client();
    for (String name : names) {
      Wait.until(() -> isFree(client, name));
    }
  }

  /** The server knows one waiter of a client; its others wait behind it. */
  private static void awaitWaiter(Redlatch client, String name) {
    Wait.until(() -> waiting(client, name) == 1);
  }

  private static void awaitNoWaiter(Redlatch client, String name) {
    Wait.until(() -> waiting(client, name) == 0);
  }

  private static void assertSays(String text, RedlatchException failure) {
    assertTrue(failure.getMessage().contains(text), () -> failure.getMessage() + ", not " + text);
  }

  // ---- all or none ------------------------------------------------------------------------------

  @Test
  void allAreHeldTogether() throws Exception {
    Redlatch mine = client();
    Redlatch other = client();
    NamedLock lock = mine.lockAll(List.of(LockName.write("b"), LockName.read("a")));
    assertEquals(List.of("b", "a"), lock.names());
    assertEquals("b", lock.name());
    try (Lease lease = lock.acquire()) {
      assertTrue(other.lock("b").tryAcquire().isEmpty());
      assertTrue(other.lock("a").tryAcquire().isEmpty());
      other.readWriteLock("a").readLock().tryAcquire().orElseThrow().close();
      assertEquals("b", lease.name());
      assertEquals(Lease.Mode.WRITE, lease.mode());
      assertTrue(lease.release());
    }
    awaitFree("a", "b");
  }

  @Test
  void eachNameHasAFence() throws Exception {
    try (Lease lease = both(client()).acquire()) {
      assertEquals(List.of("b", "a"), List.copyOf(lease.fences().keySet()));
      for (Map.Entry<String, Long> each : lease.fences().entrySet()) {
        String key = "{" + each.getKey() + "}:rl1:f";
        assertEquals(":" + each.getValue(), server.ask("INCRBY", key, "0"));
      }
      assertEquals(lease.fence(), lease.fences().get("b"));
      assertThrows(UnsupportedOperationException.class, () -> lease.fences().put("c", 1L));
    }
  }

  @Test
  void otherLeasesHaveOneFence() throws Exception {
    Redlatch client = client();
    for (NamedLock lock :
        List.of(
            client.lock("x"),
            client.readWriteLock("x").readLock(),
            client.reentrantLock("x"),
            client.lockAll(LockName.read("x")),
            client.lockPath("x"))) {
      assertEquals(List.of("x"), lock.names());
      try (Lease lease = lock.acquire(HOUR)) {
        assertEquals(Map.of("x", lease.fence()), lease.fences());
      }
    }
    try (Lease lease = client.semaphore("y", 2).acquire(2)) {
      assertEquals(Map.of("y", lease.fence()), lease.fences());
    }
    Lease detached = client.lock("z").acquire();
    try (Lease lease = client.attach("z", detached.detach(), detached.fence())) {
      assertEquals(Map.of("z", detached.fence()), lease.fences());
    }
  }

  @Test
  void oneNameIsAPlainLock() throws Exception {
    try (Lease lease = client().lockAll(LockName.read("a")).acquire()) {
      assertEquals(Lease.Mode.READ, lease.mode());
      assertTrue(lease.tryUpgrade());
      assertEquals(Map.of("a", lease.fence()), lease.fences());
    }
  }

  @Test
  void triesTakeAllOrNone() throws Exception {
    NamedLock lock = both(client());
    for (long time : new long[] {Long.MAX_VALUE, 0, -1, Long.MIN_VALUE}) {
      lock.tryAcquire(time, TimeUnit.DAYS).orElseThrow().close();
    }
    lock.tryAcquire(Duration.ZERO).orElseThrow().close();
    lock.tryAcquire().orElseThrow().close();
    try (Lease held = client().lock("a").acquire()) {
      assertTrue(lock.tryAcquire().isEmpty());
      assertTrue(lock.tryAcquire(Duration.ZERO).isEmpty());
      assertTrue(lock.tryAcquire(Long.MIN_VALUE, TimeUnit.DAYS).isEmpty());
      RedlatchException busy = assertFails(Status.BUSY, () -> lock.acquire(Duration.ZERO));
      assertSays("acquire: lock 'a'", busy);
      assertSays("acquire: 2 names were not granted within ", assertTimesOut(lock::acquire));
      assertTrue(held.isHeld());
      awaitFree("b");
    }
    awaitFree("a", "b");
  }

  /** Counts who is inside of each name. */
  private static final class Witness {
    private final AtomicInteger readers = new AtomicInteger();
    private final AtomicInteger writers = new AtomicInteger();

    void enter(Lease.Mode mode) {
      boolean reads = mode == Lease.Mode.READ;
      (reads ? readers : writers).incrementAndGet();
      assertEquals(reads ? 0 : 1, writers.get());
      assertTrue(reads || readers.get() == 0);
    }

    void leave(Lease.Mode mode) {
      (mode == Lease.Mode.READ ? readers : writers).decrementAndGet();
    }
  }

  /** One to three names in any order, some of them to read. */
  private static List<LockName> someNames(Random random) {
    List<String> all = new ArrayList<>(IntStream.range(0, NAMES).mapToObj(i -> "n" + i).toList());
    Collections.shuffle(all, random);
    return all.subList(0, 1 + random.nextInt(3)).stream()
        .map(name -> random.nextInt(3) == 0 ? LockName.read(name) : LockName.write(name))
        .toList();
  }

  /** Threads and futures of two clients, each several times. */
  @Test
  void anyOrderOfNamesIsServed() throws Exception {
    Map<String, Witness> witnesses =
        Map.of(
            "n0", new Witness(),
            "n1", new Witness(),
            "n2", new Witness(),
            "n3", new Witness(),
            "n4", new Witness());
    List<Redlatch> clients = List.of(client(), client());
    List<Worker<?>> callers = new ArrayList<>();
    for (int i = 0; i < CALLERS; i++) {
      Redlatch client = clients.get(i % 2);
      boolean isAsynchronous = i % 4 >= 2;
      Random random = new Random(i);
      callers.add(
          Worker.doing(
              () -> {
                for (int turn = 0; turn < TURNS; turn++) {
                  List<LockName> names = someNames(random);
                  NamedLock lock = client.lockAll(names);
                  try (Lease lease =
                      isAsynchronous ? Wait.get(lock.acquireAsync()) : lock.acquire()) {
                    names.forEach(name -> witnesses.get(name.name()).enter(name.mode()));
                    lease.checkHeld();
                    assertEquals(lock.names(), List.copyOf(lease.fences().keySet()));
                    names.forEach(name -> witnesses.get(name.name()).leave(name.mode()));
                  }
                }
              }));
    }
    for (Worker<?> caller : callers) {
      caller.end();
    }
    awaitFree("n0", "n1", "n2", "n3", "n4");
  }

  // ---- waits that end ---------------------------------------------------------------------------

  @Test
  void interruptLeavesNothing() throws Exception {
    NamedLock lock = both(client()).with(LONG);
    Redlatch other = client();
    for (String name : lock.names()) {
      try (Lease held = other.lock(name).acquire()) {
        for (Callable<?> call :
            List.<Callable<?>>of(
                lock::acquire,
                () -> lock.acquire(HOUR),
                () -> lock.tryAcquire(1, TimeUnit.HOURS),
                () -> lock.call(() -> 1))) {
          Worker<?> waiter = new Worker<>(call);
          awaitWaiter(other, name);
          waiter.thread.interrupt();
          assertThrows(InterruptedException.class, waiter::end);
          awaitNoWaiter(other, name);
        }
        Thread.currentThread().interrupt();
        assertThrows(InterruptedException.class, lock::acquire);
        assertTrue(held.isHeld());
      }
      awaitFree("a", "b");
    }
  }

  @Test
  void cancelLeavesNothing() throws Exception {
    NamedLock lock = both(client()).with(LONG);
    Redlatch other = client();
    for (String name : lock.names()) {
      try (Lease held = other.lock(name).acquire()) {
        List<CompletableFuture<Lease>> futures =
            List.of(
                lock.acquireAsync(),
                lock.acquireAsync(HOUR),
                lock.acquireAsync(HOUR, Runnable::run));
        awaitWaiter(other, name);
        futures.forEach(future -> assertTrue(future.cancel(true)));
        awaitNoWaiter(other, name);
        CompletableFuture<Lease> busy = lock.acquireAsync(Duration.ZERO);
        Throwable cause = assertThrows(ExecutionException.class, () -> Wait.get(busy)).getCause();
        assertEquals(Status.BUSY, assertInstanceOf(NotAcquiredException.class, cause).status());
        assertTrue(held.isHeld());
      }
      awaitFree("a", "b");
    }
  }

  /** A grant and a cancel cross: then all names are free again. */
  @Test
  void grantsThatCrossACancelAreReleased() throws Exception {
    NamedLock lock = both(client());
    NamedLock one = client().lock("a");
    for (int i = 0; i < 100; i++) {
      Lease held = one.acquire();
      CompletableFuture<Lease> future = lock.acquireAsync();
      Worker<?> cancelling = Worker.doing(() -> future.cancel(true));
      held.close();
      cancelling.end();
      if (!future.isCancelled()) {
        future.join().close();
      }
      lock.acquire(Duration.ofSeconds(Wait.PATIENCE_S)).close();
    }
    awaitFree("a", "b");
  }

  @Test
  void closedClientHasNoNames() throws Exception {
    Redlatch client = client();
    NamedLock lock = both(client).with(LONG);
    Lease held = lock.acquire();
    Worker<?> waiter = new Worker<>(lock::acquire);
    CompletableFuture<Lease> future = lock.acquireAsync();
    awaitWaiter(client(), "a");
    client.close();
    assertFails(Status.E_CLOSED, waiter::end);
    assertThrows(ExecutionException.class, () -> Wait.get(future));
    assertFails(Status.E_CLOSED, lock::acquire);
    assertFails(Status.E_CLOSED, lock::tryAcquire);
    assertFails(Status.E_CLOSED, () -> client.lockPath("a/b").acquire(HOUR));
    assertEquals(Lease.State.RELEASED, held.state());
    awaitFree("a", "b");
  }

  // ---- a lease ----------------------------------------------------------------------------------

  @Test
  void lossOfAPartIsTheLossOfAll() throws Exception {
    Redlatch client = client();
    NamedLock lock = both(client).with(SHORT);
    Lease lease = lock.acquire();
    CompletableFuture<LockLostException> lost = lease.lost();
    client.forceRelease("a");
    assertSays("lock 'b' was lost: its part 'a' was lost: ", Wait.get(lost));
    assertTrue(lease.lostText().startsWith("its part 'a' was lost: "), lease::lostText);
    assertNotEquals(Lease.LostReason.NONE, lease.lostReason());
    assertThrows(LockLostException.class, lease::checkHeld);
    assertThrows(LockLostException.class, lease::close);
    awaitFree("a", "b");
    assertThrows(
        LockLostException.class,
        () ->
            lock.call(
                () -> {
                  client.forceRelease("a");
                  return 1;
                }));
    awaitFree("a", "b");
  }

  @Test
  void releaseNamesTheLostPart() throws Exception {
    Redlatch client = client();
    Lease lease = both(client).with(LONG.renew(false)).tryAcquire().orElseThrow();
    client.forceRelease("a");
    RedlatchException failure = assertFails(Status.E_LOST, lease::release);
    assertSays("its part 'a' was lost: ", failure);
    awaitFree("a", "b");
  }

  @Test
  void leaseIsRenewedAndExtendedAsAWhole() throws Exception {
    Lease lease = both(client()).with(SHORT).acquire();
    server.awaitRenewal("a");
    server.awaitRenewal("b");
    lease.extend(Duration.ofMinutes(10));
    assertTrue(lease.remaining().compareTo(Duration.ofMinutes(9)) > 0);
    for (String name : List.of("a", "b")) {
      assertTrue(Long.parseLong(server.ask("PTTL", name).substring(1)) > 540_000);
    }
    lease.close();
  }

  @Test
  void leaseOfSeveralNamesKeepsItsMode() throws Exception {
    Redlatch client = client();
    try (Lease lease = client.lockAll(LockName.read("b"), LockName.read("a")).acquire()) {
      assertEquals(Lease.Mode.READ, lease.mode());
      String detached = "a lease of several names cannot be detached";
      assertSays(detached, assertFails(Status.E_INVALID, lease::detach));
      assertFails(Status.E_INVALID, lease::upgrade);
      assertFails(Status.E_INVALID, lease::tryUpgrade);
      assertFails(Status.E_INVALID, lease::downgrade);
      lease.checkHeld();
    }
  }

  @Test
  void viewIsBoundToItsThread() throws Exception {
    Redlatch client = client();
    Lock lock = both(client).asLock();
    lock.lock();
    lock.lock();
    assertFalse(othersGet(lock));
    lock.unlock();
    assertFalse(othersGet(client.lock("a").asLock()));
    lock.unlock();
    assertTrue(othersGet(lock));
    assertThrows(IllegalMonitorStateException.class, lock::unlock);
  }

  // ---- paths ------------------------------------------------------------------------------------

  @Test
  void pathIsAWriterBelowReaders() throws Exception {
    Redlatch client = client();
    Redlatch other = client();
    NamedLock lock = client.lockPath("a/b/c");
    assertEquals(List.of("a/b/c", "a", "a/b"), lock.names());
    try (Lease lease = lock.acquire()) {
      assertEquals(lock.names(), List.copyOf(lease.fences().keySet()));
      for (String kept : List.of("a/b/c", "a/b", "a", "a/b/c/d")) {
        assertTrue(other.lockPath(kept).tryAcquire().isEmpty(), kept);
      }
      for (String free : List.of("a/b/d", "a/c", "a/b/cc", "b", "a/b/./c", "a/b/../b/c")) {
        other.lockPath(free.getBytes(UTF_8)).tryAcquire().orElseThrow().close();
      }
      assertTrue(other.lock("a/b/c").tryAcquire().isEmpty());
      assertTrue(other.lock("a").tryAcquire().isEmpty(), "it has readers");
      other.readWriteLock("a").readLock().tryAcquire().orElseThrow().close();
    }
    awaitFree("a", "a/b", "a/b/c");
  }

  @Test
  void componentsAreBytes() throws Exception {
    Redlatch client = client();
    String composed = "a/\u00e9";
    String decomposed = "a/e\u0301";
    try (Lease one = client.lockPath(composed).acquire();
        Lease two = client.lockPath(decomposed).acquire(Duration.ZERO)) {
      assertTrue(one.isHeld() && two.isHeld());
      assertTrue(server.has(composed) && server.has(decomposed));
    }
    byte[] path = {(byte) 0xff, '/', 0};
    NamedLock lock = client.lockPath(path);
    path[0] = 'x';
    try (Lease lease = lock.acquire()) {
      byte[] reader = {(byte) 0xff};
      assertEquals(Lease.Mode.WRITE, lease.mode());
      assertTrue(client.lock(reader).tryAcquire().isEmpty());
      assertTrue(client.lock("x").tryAcquire().isPresent());
    }
  }

  @Test
  void pathHasUpToSixtyFourComponents() throws Exception {
    Redlatch client = client();
    String longest = "a" + "/a".repeat(63);
    try (Lease lease = client.lockPath(longest).acquire()) {
      assertEquals(64, lease.fences().size());
    }
    String text = "path must have at most 64 components (got 65)";
    assertSays(text, assertFails(Status.E_INVALID, () -> client.lockPath(longest + "/a")));
    assertFails(Status.E_INVALID, () -> client.lockPath("a/".repeat(1_000_000) + "a"));
    for (String path : List.of("", "/", "/a", "a/", "a//b", "//")) {
      assertSays(
          "acquire: path must have no empty component (got '" + path + "')",
          assertFails(Status.E_INVALID, () -> client.lockPath(path)));
    }
  }

  // ---- arguments --------------------------------------------------------------------------------

  @Test
  void badNamesAreRefusedAtOnce() throws Exception {
    Redlatch client = client();
    List<LockName> many =
        new ArrayList<>(IntStream.range(0, 64).mapToObj(i -> LockName.write("n" + i)).toList());
    try (Lease lease = client.lockAll(many).acquire()) {
      assertEquals(64, lease.fences().size());
    }
    many.add(LockName.read("one more"));
    LockName x = LockName.write("x");
    Map<String, Executable> wrong =
        Map.of(
            "acquire: names must be 1 to 64 (got 0)", client::lockAll,
            "acquire: names must be 1 to 64 (got more)", () -> client.lockAll(many),
            "acquire: names must differ (got 'x' twice)",
                () -> client.lockAll(x, LockName.read("x")),
            "name must be 1 to 1024 bytes", () -> client.lockAll(x, LockName.write("")),
            "(got 1025 bytes)", () -> client.lockAll(LockName.read("x".repeat(1025))),
            "name must be Unicode text", () -> LockName.read("\ud83d"),
            "path must be Unicode text", () -> client.lockPath("a/\ud83d"));
    wrong.forEach((text, call) -> assertSays(text, assertFails(Status.E_INVALID, call)));
    assertFails(Status.E_INVALID, () -> client.lockAll(List.of()));
    assertFails(Status.E_INVALID, () -> both(client).acquire(Duration.ofMillis(-1)));
  }

  @Test
  void listMayChangeAfterwards() throws Exception {
    Redlatch client = client();
    byte[] name = {'a'};
    List<LockName> names = new ArrayList<>(List.of(LockName.write(name), LockName.read("b")));
    NamedLock lock = client.lockAll(names);
    names.clear();
    name[0] = 'x';
    try (Lease lease = lock.acquire()) {
      assertEquals(List.of("a", "b"), List.copyOf(lease.fences().keySet()));
    }
  }

  @Test
  void optionsOfOneOwnerAreRefused() {
    LockOptions options = LockOptions.DEFAULT;
    Map<String, LockOptions> wrong =
        Map.of(
            "option 'owner' must not be set for several names (got 'me')", options.owner("me"),
            "option 'reentrant' must be no for several names (got 'yes')",
                options.reentrant(true));
    NamedLock lock = both(client());
    wrong.forEach(
        (text, given) ->
            assertSays(text, assertFails(Status.E_INVALID, lock.with(given)::tryAcquire)));
  }

  @Test
  void namesAreEqualByBytesAndMode() {
    LockName read = LockName.read("x");
    assertEquals(read, LockName.read(new byte[] {'x'}));
    assertEquals(read.hashCode(), LockName.read(new byte[] {'x'}).hashCode());
    assertNotEquals(read, LockName.write("x"));
    assertNotEquals(read, LockName.read("y"));
    assertEquals("x", read.name());
    assertEquals(Lease.Mode.READ, read.mode());
    assertEquals("LockName[x, READ]", read.toString());
  }
}

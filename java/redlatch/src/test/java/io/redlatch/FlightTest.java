// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.Wait.Worker;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.channels.ClosedByInterruptException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;

class FlightTest extends ServerTest {
  private static final int CALLERS = 64;
  private static final int MOST_BYTES = 65536;
  private static final Duration HOUR = Duration.ofHours(1);
  private static final FlightOptions DEFAULT = FlightOptions.DEFAULT;

  private final AtomicInteger computed = new AtomicInteger();
  private final CountDownLatch finish = new CountDownLatch(1);

  private static Callable<byte[]> gives(String value) {
    return () -> value.getBytes(UTF_8);
  }

  private static byte[] unused() {
    throw new AssertionError("it computes");
  }

  private static String fly(Redlatch client, Callable<byte[]> work) throws Exception {
    return new String(client.singleFlight("x", HOUR, work), UTF_8);
  }

  /** A flight that computes, and ends by `work` after finish(). */
  private Worker<String> computing(Redlatch client, Callable<byte[]> work) throws Exception {
    CountDownLatch inside = new CountDownLatch(1);
    Worker<String> worker =
        new Worker<>(
            () ->
                fly(
                    client,
                    () -> {
                      inside.countDown();
                      finish.await();
                      return work.call();
                    }));
    inside.await();
    return worker;
  }

  /** A flight that waits for that of another client, as the waiter with this number. */
  private static Worker<String> waiter(Redlatch client, int number, Callable<byte[]> work) {
    Worker<String> worker = new Worker<>(() -> fly(client, work));
    Wait.until(() -> waiting(client, "x") == number);
    return worker;
  }

  /** Nothing is held or stored. */
  private void assertNoValue() throws Exception {
    assertFalse(server.has("x"));
    assertEquals("next", fly(client(), gives("next")));
  }

  private void assertTold(Worker<?> waiter, String type, String text) {
    SingleFlightException told = assertThrows(SingleFlightException.class, waiter::end);
    assertEquals(type, told.type());
    assertEquals(text, told.text());
    assertEquals(Status.OK, told.status());
    assertEquals(
        "single-flight 'x': the caller that computed the value has failed: " + type
            + (text.isEmpty() ? "" : ": " + text),
        told.getMessage());
  }

  // ---- values -----------------------------------------------------------------------------------

  @Test
  void oneOfManyCallersComputes() throws Exception {
    List<Redlatch> clients = List.of(client(), client());
    List<Worker<String>> crowd = new ArrayList<>();
    CountDownLatch begin = new CountDownLatch(1);
    for (int i = 0; i < CALLERS; i++) {
      Redlatch client = clients.get(i % 2);
      Callable<byte[]> work =
          () -> {
            // A place in the queue for each client.
            Wait.until(() -> waiting(client, "x") == clients.size());
            return gives("number " + computed.incrementAndGet()).call();
          };
      crowd.add(
          new Worker<>(
              () -> {
                begin.await();
                return fly(client, work);
              }));
    }
    begin.countDown();
    for (Worker<String> one : crowd) {
      assertEquals("number 1", one.end());
    }
    assertEquals(1, computed.get());
    assertEquals("number 1", fly(client(), FlightTest::unused));
    assertFalse(server.has("x"));
    assertFalse(server.hasQueue("x"));
  }

  @Test
  void valueIsComputedAgainAfterItsTtl() throws Exception {
    Redlatch client = client();
    Duration ttl = Duration.ofMillis(300);
    long begin = System.nanoTime();
    for (String value = ""; !value.equals("2"); ) {
      Callable<byte[]> work = () -> gives("" + computed.incrementAndGet()).call();
      value = new String(client.singleFlight("x", ttl, work), UTF_8);
      assertEquals("" + computed.get(), value);
    }
    // The server counts whole milliseconds.
    assertTrue(System.nanoTime() - begin >= 299_000_000L);
  }

  @Test
  void valueIsAnyBytes() throws Exception {
    Redlatch client = client();
    byte[] key = {'a', 0, (byte) 0xff};
    String most = "\0\u00ff\r\n".repeat(MOST_BYTES / 4);
    for (String text : List.of("", "\0a\u00ff\n", "a".repeat(127), "a".repeat(128), most)) {
      byte[] value = text.getBytes(ISO_8859_1);
      key[0]++;
      assertArrayEquals(value, client.singleFlight(key, HOUR, DEFAULT, () -> value));
      assertArrayEquals(value, client.singleFlight(key, HOUR, DEFAULT, FlightTest::unused));
    }
  }

  @Test
  void longValueIsNotStored() throws Exception {
    assertRefused(() -> new byte[MOST_BYTES + 1], "65537");
  }

  @Test
  void nullIsNoValue() throws Exception {
    assertRefused(() -> null, "null");
  }

  private void assertRefused(Callable<byte[]> work, String got) throws Exception {
    Worker<String> own = computing(client(), work);
    Worker<String> other = waiter(client(), 1, FlightTest::unused);
    finish.countDown();
    RedlatchException failure = assertFails(Status.E_INVALID, own::end);
    assertEquals(
        "single-flight 'x': the value must be a byte[] of at most 65536 bytes (got " + got + ")",
        failure.getMessage());
    assertEquals(0, failure.getSuppressed().length);
    assertTold(other, "io.redlatch.RedlatchException", failure.getMessage());
    assertNoValue();
  }

  // ---- failures ---------------------------------------------------------------------------------

  private void assertFailureIsTold(Throwable thrown, String text) throws Exception {
    Worker<String> own =
        computing(
            client(),
            () -> {
              if (thrown instanceof Error error) {
                throw error;
              }
              throw (Exception) thrown;
            });
    Redlatch waiting = client();
    List<Worker<String>> others =
        List.of(waiter(waiting, 1, FlightTest::unused), waiter(client(), 2, FlightTest::unused));
    finish.countDown();
    Throwable caught = assertThrows(Throwable.class, own::end);
    assertSame(thrown, thrown instanceof Error ? caught.getCause() : caught);
    assertEquals(0, thrown.getSuppressed().length);
    for (Worker<String> one : others) {
      assertTold(one, thrown.getClass().getName(), text);
    }
    assertNoValue();
  }

  @Test
  void failureReachesThoseThatWaitAndNoLaterOne() throws Exception {
    assertFailureIsTold(new IllegalStateException("\u00e9, of the work"), "\u00e9, of the work");
  }

  @Test
  void errorIsAFailureToo() throws Exception {
    assertFailureIsTold(new StackOverflowError(), "");
  }

  /** The first who asks gets no message. */
  private static final class Mute extends Exception {
    private static final long serialVersionUID = 1;

    private boolean isAsked;

    @Override
    public String getMessage() {
      if (!isAsked) {
        isAsked = true;
        throw new IllegalStateException("of the message");
      }
      return "of the work";
    }
  }

  @Test
  void failureWithoutAMessageIsToldWithoutIt() throws Exception {
    assertFailureIsTold(new Mute(), "");
  }

  // ---- flights inside flights -------------------------------------------------------------------

  @Test
  void flightInsideItselfIsRefused() throws Exception {
    Redlatch client = client();
    Redlatch other = client();
    Callable<byte[]> inner =
        () -> {
          assertInside(client);
          return gives("of y").call();
        };
    Callable<byte[]> outer =
        () -> {
          assertInside(client);
          assertTimesOut(
              wait -> other.singleFlight("x", HOUR, DEFAULT.wait(wait), FlightTest::unused));
          byte[] value = client.singleFlight("y", HOUR, inner);
          assertInside(client);
          return value;
        };
    assertEquals("of y", fly(client, outer));
    assertEquals("of y", fly(client, FlightTest::unused));
    server.ask("FLUSHALL");
    assertThrows(AssertionError.class, () -> fly(client, FlightTest::unused));
    assertEquals("again", fly(client, gives("again")));
  }

  private static void assertInside(Redlatch client) {
    RedlatchException failure =
        assertFails(Status.E_ALREADY_HELD, () -> fly(client, FlightTest::unused));
    assertEquals(
        "single-flight 'x': this thread computes the value, and would wait for itself",
        failure.getMessage());
  }

  @Test
  void anotherThreadInsideAFlightWaits() throws Exception {
    Redlatch client = client();
    Callable<byte[]> work =
        () -> {
          Worker<?> other =
              Worker.doing(
                  () ->
                      assertTimesOut(
                          wait ->
                              client.singleFlight(
                                  "x", HOUR, DEFAULT.wait(wait), FlightTest::unused)));
          other.end();
          return gives("mine").call();
        };
    assertEquals("mine", fly(client, work));
  }

  // ---- waits ------------------------------------------------------------------------------------

  @Test
  void waitThatIsOverComputesNothing() throws Exception {
    Redlatch client = client();
    Worker<String> own = computing(client, gives("mine"));
    for (Redlatch impatient : List.of(client, client())) {
      assertTimesOut(
          wait -> impatient.singleFlight("x", HOUR, DEFAULT.wait(wait), FlightTest::unused));
    }
    finish.countDown();
    assertEquals("mine", own.end());
  }

  @Test
  void interruptEndsAWaitAndDisturbsNoOther() throws Exception {
    Worker<String> own = computing(client(), gives("mine"));
    Redlatch client = client();
    // The second shares the place of the first one, which goes away.
    Worker<String> first = waiter(client, 1, FlightTest::unused);
    Worker<String> second = waiter(client, 1, FlightTest::unused);
    Wait.until(second::isParked);
    Worker<String> third = waiter(client(), 2, FlightTest::unused);
    first.thread.interrupt();
    assertThrows(InterruptedException.class, first::end);
    assertEquals(2, waiting(client, "x"));
    finish.countDown();
    for (Worker<String> one : List.of(own, second, third)) {
      assertEquals("mine", one.end());
    }
    Thread.currentThread().interrupt();
    assertThrows(InterruptedException.class, () -> fly(client, FlightTest::unused));
    assertFalse(Thread.interrupted(), "the exception has taken it");
  }

  // ---- another one computes ---------------------------------------------------------------------

  @Test
  void nextOneComputesAfterAnInterrupt() throws Exception {
    Worker<String> own = computing(client(), FlightTest::unused);
    Worker<String> next = waiter(client(), 1, gives("of the next"));
    own.thread.interrupt();
    InterruptedException thrown = assertThrows(InterruptedException.class, own::end);
    assertEquals(0, thrown.getSuppressed().length);
    assertEquals("of the next", next.end());
  }

  /** Other exceptions of an interrupt leave the thread interrupted. */
  @Test
  void nextOneComputesAfterAnInterruptOfAChannel() throws Exception {
    Worker<String> own =
        computing(
            client(),
            () -> {
              Thread.currentThread().interrupt();
              throw new ClosedByInterruptException();
            });
    Worker<String> next = waiter(client(), 1, gives("of the next"));
    finish.countDown();
    assertThrows(ClosedByInterruptException.class, own::end);
    assertEquals("of the next", next.end());
  }

  @Test
  void interruptedOneThatHasAValueStoresIt() throws Exception {
    Callable<byte[]> work =
        () -> {
          Thread.currentThread().interrupt();
          return gives("mine").call();
        };
    assertEquals("mine", fly(client(), work));
    assertTrue(Thread.interrupted(), "the thread stays interrupted");
    assertEquals("mine", fly(client(), FlightTest::unused));
  }

  /** A process that computes until it is killed. */
  static final class Endless {
    private Endless() {}

    public static void main(String[] arguments) throws Exception {
      Redlatch.connect(arguments[0])
          .singleFlight(
              "x",
              HOUR,
              DEFAULT.with(SHORT),
              () -> {
                System.out.println("computes");
                new CountDownLatch(1).await();
                return new byte[0];
              });
    }
  }

  @Test
  void nextOneComputesAfterADeath() throws Exception {
    Process process = Child.start(Endless.class, server.url());
    try {
      String said =
          new BufferedReader(new InputStreamReader(process.getInputStream(), UTF_8)).readLine();
      assertEquals("computes", said);
      Worker<String> next = waiter(client(), 1, gives("of the next"));
      process.destroyForcibly();
      assertEquals("of the next", next.end());
    } finally {
      process.destroyForcibly().waitFor();
    }
  }

  // ---- losses -----------------------------------------------------------------------------------

  @Test
  void lossHasNoValue() throws Exception {
    Redlatch client = client();
    Callable<byte[]> work =
        () -> {
          client.forceRelease("x");
          return gives("too late").call();
        };
    LockLostException lost = assertThrows(LockLostException.class, () -> fly(client, work));
    assertTrue(lost.getMessage().startsWith("single-flight"), lost::getMessage);
    assertEquals(0, lost.getSuppressed().length);
    assertNoValue();
  }

  @Test
  void exceptionOfTheWorkHasTheLossAsASuppressedOne() throws Exception {
    Redlatch client = client();
    for (Exception thrown : List.of(new Exception("of the work"), new InterruptedException())) {
      Callable<byte[]> work =
          () -> {
            client.forceRelease("x");
            throw thrown;
          };
      assertSame(thrown, assertThrows(Exception.class, () -> fly(client, work)));
      assertEquals(1, thrown.getSuppressed().length);
      assertInstanceOf(LockLostException.class, thrown.getSuppressed()[0]);
    }
    assertNoValue();
  }

  @Test
  void closedClientHasNoValue() throws Exception {
    Redlatch closed = Redlatch.connect(server.url());
    Callable<byte[]> work =
        () -> {
          closed.close();
          return gives("too late").call();
        };
    assertFails(Status.E_CLOSED, () -> fly(closed, work));
    assertNoValue();
  }

  // ---- the server -------------------------------------------------------------------------------

  /** The release is repeated in the background, and stores the value there. */
  @Test
  void missingAnswerDoesNotFailTheWork() throws Exception {
    Redlatch client = client(ClientOptions.DEFAULT.with("command_timeout", "3s"));
    List<String> warnings = new CopyOnWriteArrayList<>();
    Logger logger = Logger.getLogger("io.redlatch");
    logger.setFilter(record -> !warnings.add(record.getMessage()));
    Callable<byte[]> work =
        () -> {
          server.pause();
          return gives("mine").call();
        };
    assertEquals("mine", fly(client, work));
    logger.setFilter(null);
    server.resume();
    assertEquals(List.of("a value was computed, and may not be stored"), warnings);
    Wait.until(() -> !server.has("x"));
    assertEquals("mine", fly(client(), FlightTest::unused));
  }

  @Test
  void serverThatCannotStoreTheValueIsAFailure() throws Exception {
    Redlatch client = client();
    assertFails(Status.E_SERVER, () -> fly(client, forbidding(gives("mine"))));
    allow("+set");
    Exception thrown = new Exception("of the work");
    Logger logger = Logger.getLogger("io.redlatch");
    logger.setFilter(record -> false);
    Callable<byte[]> failing =
        () -> {
          throw thrown;
        };
    assertSame(thrown, assertThrows(Exception.class, () -> fly(client, forbidding(failing))));
    logger.setFilter(null);
    assertEquals(0, thrown.getSuppressed().length);
    allow("+set");
    assertNoValue();
  }

  private Callable<byte[]> forbidding(Callable<byte[]> work) {
    return () -> {
      allow("-set");
      return work.call();
    };
  }

  private void allow(String rule) {
    assertEquals("+OK", server.ask("ACL", "SETUSER", "default", rule));
  }

  // ---- arguments --------------------------------------------------------------------------------

  @Test
  void optionsOfTheLockAreUsed() throws Exception {
    Redlatch client = client();
    FlightOptions options = DEFAULT.wait(HOUR).with(LONG.label("price"));
    Callable<byte[]> work =
        () -> {
          LockInfo.Holder holder = client.inspect("x").holders().get(0);
          assertTrue(holder.remaining().orElseThrow().compareTo(Duration.ofMinutes(1)) > 0);
          return new byte[0];
        };
    assertEquals(0, client.singleFlight("x", HOUR, options, work).length);
    assertEquals(
        "FlightOptions[wait PT1H, LockOptions[label=price]]",
        DEFAULT.wait(HOUR).with(LockOptions.DEFAULT.label("price")).toString());
    assertEquals("FlightOptions[LockOptions[]]", DEFAULT.toString());
  }

  @Test
  void wrongArgumentsAreRefusedBeforeTheWork() {
    Redlatch client = client();
    List<Duration> wrong =
        List.of(
            Duration.ZERO, HOUR.negated(), Duration.ofMillis(9), Duration.ofDays(7).plusMillis(1));
    for (Duration ttl : wrong) {
      RedlatchException failure =
          assertFails(
              Status.E_INVALID, () -> client.singleFlight("x", ttl, FlightTest::unused));
      String said = failure.getMessage();
      assertTrue(said.startsWith("single-flight 'x': ttl must be 10 ms to 7 days (got "), said);
    }
    for (LockOptions lock :
        List.of(
            LockOptions.DEFAULT.format(LockOptions.Format.HASH),
            LockOptions.DEFAULT.owner("me"),
            LockOptions.DEFAULT.ttl(Duration.ofMillis(1)))) {
      assertFails(
          Status.E_INVALID,
          () -> client.singleFlight("x", HOUR, DEFAULT.with(lock), FlightTest::unused));
    }
    assertFails(Status.E_INVALID, () -> client.singleFlight("", HOUR, FlightTest::unused));
    RedlatchException wait = assertFails(Status.E_INVALID, () -> DEFAULT.wait(Duration.ZERO));
    assertEquals("single-flight: wait must be above 0 (got 0ms)", wait.getMessage());
    assertFails(Status.E_INVALID, () -> DEFAULT.wait(HOUR.negated()));
    assertFalse(server.has("x"));
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.System.Logger;
import java.util.List;
import java.util.ResourceBundle;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

class LogTest extends ServerTest {
  /** What was written to it, a line each. */
  private static class Lines implements Logger {
    final List<String> all = new CopyOnWriteArrayList<>();
    private final Runnable then;

    /** After each line it does something. */
    Lines(Runnable then) {
      this.then = then;
    }

    Lines() {
      this(() -> {});
    }

    @Override
    public String getName() {
      return "lines";
    }

    @Override
    public boolean isLoggable(Level level) {
      return true;
    }

    @Override
    public void log(Level level, ResourceBundle bundle, String text, Throwable thrown) {
      all.add(level + " " + text);
    }

    @Override
    public void log(Level level, ResourceBundle bundle, String format, Object... parameters) {
      all.add(level + " " + format);
      then.run();
    }
  }

  private void loseALock(Redlatch client, String name) throws Exception {
    Lease lease = client.lock(name).with(SHORT).acquire();
    client.forceRelease(name);
    Wait.until(() -> !lease.isHeld());
    assertEquals(Lease.LostReason.GONE, lease.lostReason());
    assertTrue(lease.lostText().startsWith("the server does not have"), lease.lostText());
  }

  private static boolean has(Lines lines, String beginning, String name) {
    return lines.all.stream().anyMatch(line -> line.startsWith(beginning) && line.contains(name));
  }

  @Test
  void lossIsLoggedAsAnError() throws Exception {
    Lines lines = new Lines();
    Redlatch client = client();
    closing(client.logTo(lines));
    loseALock(client, "first");
    Wait.until(() -> has(lines, "ERROR lock 'first' ", "lost"));
    // It goes on, with lines of any length and with braces.
    String name = "{0}".repeat(20);
    loseALock(client, name);
    Wait.until(() -> has(lines, "ERROR lock ", name));
  }

  @Test
  void outageIsLogged() throws Exception {
    Lines lines = new Lines();
    Redlatch client = client();
    closing(client.logTo(lines));
    assertTrue(client.lock("x").acquire().isHeld());
    server.kill();
    Wait.until(() -> has(lines, "WARNING ", ""));
  }

  @Test
  void onlyTheLastLoggerGetsLines() throws Exception {
    Lines first = new Lines();
    Lines second = new Lines();
    Redlatch client = client();
    LogBridge replaced = client.logTo(first);
    LogBridge bridge = client.logTo(second);
    replaced.close();
    loseALock(client, "x");
    Wait.until(() -> has(second, "ERROR", "'x'"));
    bridge.close();
    bridge.close();
    loseALock(client, "y");
    Lines third = new Lines();
    closing(client.logTo(third));
    Wait.until(() -> has(third, "ERROR", "'y'"));
    assertEquals(List.of(), first.all);
    assertTrue(second.all.stream().noneMatch(line -> line.contains("'y'")), second.all::toString);
  }

  /** Lines that are there already when it is closed are for the next one. */
  @Test
  void closedLoggerGetsNoMoreLines() throws Exception {
    Redlatch client = client();
    loseALock(client, "x");
    loseALock(client, "y");
    CompletableFuture<LogBridge> bridge = new CompletableFuture<>();
    Lines first = new Lines(() -> bridge.join().close());
    bridge.complete(client.logTo(first));
    Wait.until(() -> !first.all.isEmpty());
    Lines next = new Lines();
    closing(client.logTo(next));
    Wait.until(() -> has(next, "ERROR", "'y'"));
    assertEquals(1, first.all.size(), first.all::toString);
  }

  @Test
  void eachClientHasItsOwnLines() throws Exception {
    Lines first = new Lines();
    Lines second = new Lines();
    Redlatch one = client();
    Redlatch other = client();
    closing(one.logTo(first));
    closing(other.logTo(second));
    loseALock(one, "of one");
    loseALock(other, "of the other");
    Wait.until(() -> has(first, "ERROR", "'of one'"));
    Wait.until(() -> has(second, "ERROR", "'of the other'"));
    assertEquals(1, first.all.size(), first.all::toString);
    assertEquals(1, second.all.size(), second.all::toString);
  }

  @Test
  void closeReturnsAfterTheLastLine() throws Exception {
    Redlatch client = client();
    CountDownLatch begun = new CountDownLatch(1);
    Lines slow =
        new Lines() {
          @Override
          public void log(Level level, ResourceBundle bundle, String format, Object... parameters) {
            begun.countDown();
            LockSupport.parkNanos(100_000_000);
            super.log(level, bundle, format, parameters);
          }
        };
    client.logTo(slow);
    loseALock(client, "x");
    assertTrue(begun.await(Wait.PATIENCE_S, TimeUnit.SECONDS));
    client.close();
    assertTrue(has(slow, "ERROR", "'x'"), slow.all::toString);
  }

  /** A logger that fails is not the end of the log. */
  @Test
  void failingLoggerGetsLaterLines() throws Exception {
    Redlatch client = client();
    Lines lines =
        new Lines(
            () -> {
              throw new IllegalStateException("of the logger");
            });
    closing(client.logTo(lines));
    loseALock(client, "x");
    Wait.until(() -> has(lines, "ERROR", "'x'"));
    loseALock(client, "y");
    Wait.until(() -> has(lines, "ERROR", "'y'"));
  }
}

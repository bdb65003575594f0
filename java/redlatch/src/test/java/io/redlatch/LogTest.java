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
import org.junit.jupiter.api.Test;

class LogTest extends ServerTest {
  /** What was written to it, a line each. */
  private static class Lines implements Logger {
    final List<String> all = new CopyOnWriteArrayList<>();

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
    }
  }

  private void loseALock(Redlatch client, String name) throws Exception {
    Lease lease = client.lock(name).with(SHORT).acquire();
    client.forceRelease(name);
    Wait.until(() -> !lease.isHeld());
  }

  private static boolean has(Lines lines, String beginning, String name) {
    return lines.all.stream().anyMatch(line -> line.startsWith(beginning) && line.contains(name));
  }

  @Test
  void lossIsLoggedAsAnError() throws Exception {
    Lines lines = new Lines();
    try (LogBridge bridge = Redlatch.logTo(lines)) {
      Redlatch client = client();
      loseALock(client, "first");
      Wait.until(() -> has(lines, "ERROR lock 'first' ", "lost"));
      // It goes on, with lines of any length and with braces.
      String name = "{0}".repeat(20);
      loseALock(client, name);
      Wait.until(() -> has(lines, "ERROR lock ", name));
      assertTrue(bridge != null);
    }
  }

  @Test
  void outageIsLogged() throws Exception {
    Lines lines = new Lines();
    try (LogBridge bridge = Redlatch.logTo(lines)) {
      Redlatch client = client();
      assertTrue(client.lock("x").acquire().isHeld() && bridge != null);
      server.kill();
      Wait.until(() -> has(lines, "WARNING ", ""));
    }
  }

  @Test
  void oneIsToldAtATime() throws Exception {
    Lines first = new Lines();
    Lines second = new Lines();
    Redlatch client = client();
    LogBridge replaced = Redlatch.logTo(first);
    LogBridge bridge = Redlatch.logTo(second);
    replaced.close();
    loseALock(client, "x");
    Wait.until(() -> has(second, "ERROR", "'x'"));
    bridge.close();
    bridge.close();
    loseALock(client, "y");
    Lines third = new Lines();
    try (LogBridge last = Redlatch.logTo(third)) {
      Wait.until(() -> has(third, "ERROR", "'y'"));
      assertTrue(last != null);
    }
    assertEquals(List.of(), first.all);
    assertTrue(second.all.stream().noneMatch(line -> line.contains("'y'")), second.all::toString);
  }

  /** Lines that are there already when it is closed are for the next one. */
  @Test
  void closedOneIsToldNothing() throws Exception {
    Redlatch client = client();
    loseALock(client, "x");
    loseALock(client, "y");
    CompletableFuture<LogBridge> bridge = new CompletableFuture<>();
    Lines closing =
        new Lines() {
          @Override
          public void log(Level level, ResourceBundle bundle, String format, Object... parameters) {
            super.log(level, bundle, format, parameters);
            bridge.join().close();
          }
        };
    bridge.complete(Redlatch.logTo(closing));
    Wait.until(() -> !closing.all.isEmpty());
    Lines next = new Lines();
    try (LogBridge last = Redlatch.logTo(next)) {
      Wait.until(() -> has(next, "ERROR", "'y'"));
      assertTrue(last != null);
    }
    assertEquals(1, closing.all.size(), closing.all::toString);
  }

  /** A logger that fails is not the end of the log. */
  @Test
  void loggerMayFail() throws Exception {
    Redlatch client = client();
    Lines lines =
        new Lines() {
          @Override
          public void log(Level level, ResourceBundle bundle, String format, Object... parameters) {
            super.log(level, bundle, format, parameters);
            throw new IllegalStateException("of the logger");
          }
        };
    try (LogBridge bridge = Redlatch.logTo(lines)) {
      loseALock(client, "x");
      Wait.until(() -> has(lines, "ERROR", "'x'"));
      loseALock(client, "y");
      Wait.until(() -> has(lines, "ERROR", "'y'"));
      assertTrue(bridge != null);
    }
  }
}

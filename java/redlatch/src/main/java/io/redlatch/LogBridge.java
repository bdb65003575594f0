// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.NativeLibrary;
import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.RlcConstants;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import org.jspecify.annotations.Nullable;

/** Writes the log of the library to a logger of Java's: {@link Redlatch#logTo}. */
public final class LogBridge implements AutoCloseable {
  private static @Nullable LogBridge current;

  private final Logger logger;
  private long tag;

  private LogBridge(Logger logger) {
    this.logger = logger;
  }

  static LogBridge to(Logger logger) {
    NativeLibrary.load();
    LogBridge bridge = new LogBridge(logger);
    synchronized (LogBridge.class) {
      end();
      current = bridge;
      bridge.watch();
    }
    return bridge;
  }

  /** It is told once, until all lines were taken. A logger may wait, which the pump may not. */
  private void watch() {
    tag =
        Pump.watch(
            (queue, tag) -> Rlc.log_watch(RlcConstants.RL_LOG_INFO, queue, tag),
            () -> Threads.tell(this::write));
  }

  private void write() {
    for (String line; !(line = next()).isEmpty(); ) {
      write(line);
    }
  }

  /** After the last line it watches for more. What comes after its end is for whoever is next. */
  private String next() {
    synchronized (LogBridge.class) {
      if (current != this) {
        return "";
      }
      String line = Text.of(Text.read(Rlc::log_next));
      if (line.isEmpty()) {
        watch();
      }
      return line;
    }
  }

  private void write(String line) {
    int space = line.indexOf(' ');
    try {
      logger.log(levelOf(line.substring(0, space)), line.substring(space + 1));
    } catch (RuntimeException | Error ofTheLogger) {
      // Whom else could it be told. It is not the end of the log.
    }
  }

  private static Level levelOf(String kind) {
    switch (kind) {
      case "error":
        return Level.ERROR;
      case "warning":
        return Level.WARNING;
      default:
        return Level.INFO;
    }
  }

  private static void end() {
    if (current != null) {
      Rlc.log_watch(RlcConstants.RL_LOG_INFO, null, 0);
      Pump.forget(current.tag);
      current = null;
    }
  }

  /** Writes no more. A second close() does nothing, nor does one when another has its place. */
  @Override
  public void close() {
    synchronized (LogBridge.class) {
      if (current == this) {
        end();
      }
    }
  }
}

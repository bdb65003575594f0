// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.RlcConstants;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_client;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.Queue;
import java.util.concurrent.locks.ReentrantLock;

/** Writes the log of a client to a logger of Java: {@link Redlatch#logTo}. */
public final class LogBridge implements AutoCloseable {
  /** The handle, not the client: the client may be collected, which ends the bridge. */
  private final SWIGTYPE_p_rl_client handle;

  private final Logger logger;

  /** Lines that come before those that the library has. */
  private final Queue<String> earlier;

  /**
   * The client's close() waits for the line that another thread is writing. Reentrant: a logger
   * may close the client.
   */
  private final ReentrantLock writing = new ReentrantLock();

  private boolean isClosed;
  private long tag;

  LogBridge(SWIGTYPE_p_rl_client handle, Logger logger, Queue<String> earlier) {
    this.handle = handle;
    this.logger = logger;
    this.earlier = earlier;
  }

  /** Notified once, until all lines were taken. A logger may wait, which the pump may not. */
  synchronized void watch() {
    if (isClosed) {
      return;
    }
    tag =
        Pump.watch(
            (queue, tag) ->
                Rlc.client_log_watch(handle, RlcConstants.RL_LOG_INFO, queue, tag),
            () -> Threads.tell(this::write));
  }

  private void write() {
    writeAll();
    watch();
  }

  void writeAll() {
    writing.lock();
    try {
      for (String line; !(line = next()).isEmpty(); ) {
        write(line);
      }
    } finally {
      writing.unlock();
    }
  }

  synchronized boolean isClosed() {
    return isClosed;
  }

  /** "" after the last line, and after the end, when the lines are for another bridge. */
  private synchronized String next() {
    if (isClosed) {
      return "";
    }
    String line = earlier.poll();
    return line != null ? line : Text.of(Text.read(buffer -> Rlc.client_log_next(handle, buffer)));
  }

  private void write(String line) {
    int space = line.indexOf(' ');
    try {
      logger.log(levelOf(line.substring(0, space)), line.substring(space + 1));
    } catch (RuntimeException | Error ofTheLogger) {
      // There is nothing else that could report it. It is not the end of the log.
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

  /** Ends the log after the line that is being written. A second close() does nothing. */
  @Override
  public synchronized void close() {
    if (!isClosed) {
      isClosed = true;
      Pump.forget(tag);
    }
  }
}

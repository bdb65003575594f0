// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import io.redlatch.RedlatchException;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** What the end of a block logs in this thread, where users would see it. */
final class Logged extends Handler {
  private static final ThreadLocal<RedlatchException> FAILURE = new ThreadLocal<>();

  /** Kept, since loggers that nobody has are collected. */
  private static final Logger LOGGER = Logger.getLogger("io.redlatch");

  static {
    LOGGER.setUseParentHandlers(false);
    LOGGER.addHandler(new Logged());
  }

  /** Does it, and throws what it has logged. */
  static void during(Runnable action) {
    FAILURE.remove();
    action.run();
    RedlatchException failure = FAILURE.get();
    if (failure != null) {
      throw failure;
    }
  }

  @Override
  public void publish(LogRecord record) {
    if (record.getThrown() instanceof RedlatchException failure) {
      FAILURE.set(failure);
    }
  }

  @Override
  public void flush() {}

  @Override
  public void close() {}
}

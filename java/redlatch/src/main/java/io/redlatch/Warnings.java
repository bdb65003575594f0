// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import org.jspecify.annotations.Nullable;

/** Background events, as lines of the log. */
final class Warnings {
  private static final Logger LOGGER = System.getLogger("io.redlatch");

  private Warnings() {}

  /** The release continues by itself: `failure` has the reason why its result is not known. */
  static void unanswered(RedlatchException failure) {
    warn("a release continues in the background", failure);
  }

  /** `failure` has the reason why the server may not remember the success of a run. */
  static void unnoted(RedlatchException failure) {
    warn("a job has succeeded, and may run again in its period", failure);
  }

  /** `failure` has the reason why the server may not have the value of a flight. */
  static void unstored(RedlatchException failure) {
    warn("a value was computed, and may not be stored", failure);
  }

  /** A line of the log of a client. */
  static void ofLog(String line) {
    warn(line, null);
  }

  static void clientDropped() {
    warn("a client was dropped without close()", null);
  }

  static void leaseDropped(String name) {
    warn(
        "a lease of " + Text.quoted(name) + " was dropped while it was held: it stays held until"
            + " its client is closed",
        null);
  }

  /** An exception of the logger must not stop the caller. */
  private static void warn(String message, @Nullable Throwable failure) {
    try {
      LOGGER.log(Level.WARNING, message, failure);
    } catch (RuntimeException | Error ofTheLogger) {
      Threads.report(ofTheLogger);
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import org.jspecify.annotations.Nullable;

/** What no call reports. */
final class Warnings {
  private static final Logger LOGGER = System.getLogger("io.redlatch");

  private Warnings() {}

  /** The release goes on by itself: `failure` says why it is not known how it went. */
  static void unanswered(RedlatchException failure) {
    warn("a release continues in the background", failure);
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

  /** What the logger throws must not keep anybody from going on. */
  private static void warn(String message, @Nullable Throwable failure) {
    try {
      LOGGER.log(Level.WARNING, message, failure);
    } catch (RuntimeException | Error ofTheLogger) {
      Threads.report(ofTheLogger);
    }
  }
}

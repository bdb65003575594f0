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

  /** `failure` has the reason of the next try. */
  static void retried(String what, String election, long delayMs, Throwable failure) {
    warn(what + of(election) + " has failed; the next try is in " + delayMs + " ms", failure);
  }

  /** `failure` has the reason why no more tries follow. */
  static void electionEnded(String what, String election, Throwable failure) {
    warn("the " + what + of(election) + " has ended", failure);
  }

  static void callbackFailed(String what, String election, Throwable failure) {
    warn("the callback " + what + of(election) + " has failed", failure);
  }

  /** `where` has the stack of the thread. */
  static void callbackBlocks(String what, String election, Throwable where) {
    warn("the callback " + what + of(election) + " blocks, and delays others", where);
  }

  /** A close() no longer waits for the callbacks. */
  static void closeUnfinished(String election) {
    warn("a callback still runs after the close of an elector" + of(election), null);
  }

  private static String of(String election) {
    return " of election " + Text.quoted(election);
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

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;

/** What no call reports. */
final class Warnings {
  private static final Logger LOGGER = System.getLogger("io.redlatch");

  private Warnings() {}

  /** The release goes on by itself: `failure` says why it is not known how it went. */
  static void unanswered(RedlatchException failure) {
    LOGGER.log(Level.WARNING, "a release goes on in the background", failure);
  }

  static void clientDropped() {
    LOGGER.log(Level.WARNING, "a client was dropped without close()");
  }

  static void leaseDropped(String name) {
    LOGGER.log(
        Level.WARNING,
        "a lease of " + Text.quoted(name) + " was dropped while it was held: it stays held until"
            + " its client is closed");
  }
}

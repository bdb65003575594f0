// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;

/** Tells of what was dropped before it was ended. */
final class Leaks {
  private static final Logger LOGGER = System.getLogger("io.redlatch");

  private Leaks() {}

  static void report(String what, String name) {
    LOGGER.log(
        Level.WARNING,
        what.equals("client")
            ? "a client was dropped without close()"
            : "a lease of " + Text.quoted(name) + " was dropped while it was held: it stays held"
                + " until its client is closed");
  }
}

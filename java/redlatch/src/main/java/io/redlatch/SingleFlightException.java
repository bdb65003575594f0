// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

/**
 * The caller of {@link Redlatch#singleFlight} that computed the value has failed, in this process
 * or another one. The exception has the texts of that failure, and no cause. The status is {@link
 * Status#OK}: the lock and the server did not fail.
 */
public final class SingleFlightException extends RedlatchException {
  private static final long serialVersionUID = 1;

  /** The name of the type of that failure. */
  private final String type;

  /** The message of that failure. */
  private final String text;

  SingleFlightException(String message, String type, String text) {
    super(Status.OK, message + type + (text.isEmpty() ? "" : ": " + text));
    this.type = type;
    this.text = text;
  }

  /** The type of that failure, such as java.io.IOException; other languages have other names. */
  public String type() {
    return type;
  }

  /** The message of that failure; empty without one. */
  public String text() {
    return text;
  }
}

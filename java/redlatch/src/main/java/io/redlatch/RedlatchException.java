// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

/** A call failed. Branch on status() and show the message: messages may change, statuses do not. */
public class RedlatchException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** The result of the call. */
  private final Status status;

  RedlatchException(Status status, String message) {
    super(message);
    this.status = status;
  }

  /** The result of the call. */
  public final Status status() {
    return status;
  }

  static RedlatchException of(Status status, String op, String name, String said) {
    String what = said.isEmpty() ? status.text() : said;
    // Most of what the library says names the lock already.
    boolean isNamed = name.isEmpty() || what.contains(Text.quoted(name));
    String message = op + (isNamed ? "" : " " + Text.quoted(name)) + ": " + what;
    switch (status) {
      case E_LOST:
        return new LockLostException(message);
      case BUSY:
      case TIMEOUT:
        return new NotAcquiredException(status, message);
      default:
        return new RedlatchException(status, message);
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

/**
 * Somebody else holds the lock: {@link Status#BUSY} at once, {@link Status#TIMEOUT} after a wait.
 */
public final class NotAcquiredException extends RedlatchException {
  private static final long serialVersionUID = 1;

  NotAcquiredException(Status status, String message) {
    super(status, message);
  }
}

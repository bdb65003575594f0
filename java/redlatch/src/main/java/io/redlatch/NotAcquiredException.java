// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

/**
 * The lock was not acquired: another holder has it. {@link Status#BUSY} after one try, {@link
 * Status#TIMEOUT} after a wait.
 */
public final class NotAcquiredException extends RedlatchException {
  private static final long serialVersionUID = 1;

  NotAcquiredException(Status status, String message) {
    super(status, message);
  }
}

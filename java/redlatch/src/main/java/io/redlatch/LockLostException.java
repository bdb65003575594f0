// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

/**
 * The lock was held and is no longer certain. Stop: another holder may have it. {@link
 * Lease#lostReason} has the reason.
 */
public final class LockLostException extends RedlatchException {
  private static final long serialVersionUID = 1;

  LockLostException(String message) {
    super(Status.E_LOST, message);
  }
}

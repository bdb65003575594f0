// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

/**
 * A lock was held and is not certain any more: it expired, or was taken over, or was forced; the
 * message says which. Others may have worked at the same time.
 */
public final class LockLostException extends RedlatchException {
  private static final long serialVersionUID = 1;

  LockLostException(String message) {
    super(Status.E_LOST, message);
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

/**
 * A result of a check of a server: {@link Redlatch#check}.
 *
 * @param address address of the server, without secrets.
 * @param id the check, such as "eviction".
 * @param level the severity.
 * @param seen the value that was found.
 * @param advice a remedy; "" if none is needed.
 */
public record Finding(String address, String id, Level level, String seen, String advice) {

  /** The severity of a finding. In the order of the numbers of the C ABI. */
  public enum Level {
    /** The check had no result: a right is missing, or no answer came. */
    UNKNOWN,
    /** All is well. */
    OK,
    /** Locks may be lost, or are slower. */
    WARN,
    /** A lock may have two holders, or cannot be acquired. */
    FAIL
  }
}

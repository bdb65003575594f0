// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

/**
 * What a check of a server has found: {@link Redlatch#check}.
 *
 * @param address of the server, without secrets.
 * @param id what was looked at, such as "eviction".
 * @param level how bad it is.
 * @param seen what was seen.
 * @param advice what to do; "" for nothing.
 */
public record Finding(String address, String id, Level level, String seen, String advice) {

  /** In the order of the numbers of the C ABI. */
  public enum Level {
    /** It could not be found out: a missing right, or no answer. */
    UNKNOWN,
    /** All is well. */
    OK,
    /** Locks may be lost, or are slower. */
    WARN,
    /** A lock may have two holders, or cannot be taken. */
    FAIL
  }
}

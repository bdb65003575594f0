// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

// ---- Finding: made of info_fields.def by tools/gen_info.py ----
/**
 * A result of a check of a server: {@link Redlatch#check}.
 *
 * @param address address of the server, without secrets
 * @param id name of the check, such as eviction; docs/health.md has the list
 * @param level the severity
 * @param seen the value that was found, in words
 * @param advice a remedy; empty if none is needed
 */
public record Finding(
    String address,
    String id,
    Level level,
    String seen,
    String advice) {
// ---- end of Finding ----

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

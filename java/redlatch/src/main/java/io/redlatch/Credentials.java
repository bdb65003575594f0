// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.time.Duration;

/**
 * User and password for AUTH: see {@link CredentialsProvider}.
 *
 * @param user "": the default user.
 * @param password or a token.
 * @param valid the time from now for which they can be used, or {@link #NO_END}. Zero and less are
 *     refused, such as the time until the end of a token that has ended.
 */
public record Credentials(String user, String password, Duration valid) {
  /** They are valid until others are given. No two instants are as far apart. */
  public static final Duration NO_END = Duration.ofSeconds(Long.MAX_VALUE);

  /** Credentials without an end. */
  public Credentials(String user, String password) {
    this(user, password, NO_END);
  }

  /** Leaves the password out. */
  @Override
  public String toString() {
    return "Credentials[user=" + user + ", password=***, valid=" + valid + "]";
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.time.Duration;

/**
 * What a server is given for AUTH: see {@link CredentialsProvider}.
 *
 * @param user "" is the default user.
 * @param password or a token.
 * @param valid the time from now for which they can be used, or {@link #NO_END}.
 *     The time until the end of a token that has ended is refused.
 */
public record Credentials(String user, String password, Duration valid) {
  /** They are good until others are given. No two instants are as far apart. */
  public static final Duration NO_END = Duration.ofSeconds(Long.MAX_VALUE);

  /** Credentials without an end. */
  public Credentials(String user, String password) {
    this(user, password, NO_END);
  }

  /** Has no password. */
  @Override
  public String toString() {
    return "Credentials[user=" + user + ", password=***, valid=" + valid + "]";
  }
}

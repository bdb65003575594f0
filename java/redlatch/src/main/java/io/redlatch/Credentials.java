// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.time.Duration;

/**
 * What a server is given for AUTH: see {@link CredentialsProvider}.
 *
 * @param user "" is the default user.
 * @param password or a token.
 * @param valid the time from now for which they can be used, at least a second; zero: no end.
 */
public record Credentials(String user, String password, Duration valid) {
  /** Credentials without an end. */
  public Credentials(String user, String password) {
    this(user, password, Duration.ZERO);
  }

  /** Has no password. */
  @Override
  public String toString() {
    return "Credentials[user=" + user + ", password=***, valid=" + valid + "]";
  }
}

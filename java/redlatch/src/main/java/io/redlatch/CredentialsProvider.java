// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

/** Gives passwords that change, and tokens that end: {@link Redlatch#credentialsFrom}. */
@FunctionalInterface
public interface CredentialsProvider {
  /**
   * Called in a thread of redlatch, where it may block: when a connection needs credentials, before
   * the last ones end, and when a server has refused them.
   *
   * @throws Exception if there are no credentials. Connections fail with its text, as without a
   *     server, and are tried again.
   */
  Credentials credentials() throws Exception;
}

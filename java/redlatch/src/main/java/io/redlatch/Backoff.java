// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

/** The delays between tries: 1 s, then twice the last delay, up to 30 s. For one thread. */
final class Backoff {
  static final long MOST_MS = 30_000;
  private static final long FIRST_MS = 1_000;

  private long nextMs = FIRST_MS;

  long next() {
    long ms = nextMs;
    nextMs = Math.min(2 * ms, MOST_MS);
    return ms;
  }

  void reset() {
    nextMs = FIRST_MS;
  }
}

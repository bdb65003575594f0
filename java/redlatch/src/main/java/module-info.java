// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

/** Locks that processes on many hosts share, over Redis and Valkey. */
module io.redlatch {
  requires static org.jspecify;

  exports io.redlatch;
}

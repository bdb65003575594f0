// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

/** Locks of redlatch for the tasks of ShedLock. */
module io.redlatch.shedlock {
  requires transitive io.redlatch;
  requires transitive net.javacrumbs.shedlock.core;
  requires static org.jspecify;

  exports io.redlatch.shedlock;
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

/** What a lock has been granted last: a lease, or the term of a leader. */
interface Holding {
  Answer run(String op, Values values) throws InterruptedException;

  Answer release();
}

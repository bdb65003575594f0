// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.util.Optional;

/** The holder that a forced release without a token removes. */
final class ForcedRelease {
  private ForcedRelease() {}

  /** The token of the only holder of a lock of redlatch; empty if there are more. */
  static Optional<byte[]> tokenOf(LockInfo info) {
    if (info.state() == LockInfo.State.FREE) {
      throw refused(Status.E_NOT_HELD, info, " is free: nothing to release");
    }
    if (info.state() != LockInfo.State.HELD) {
      throw refused(
          Status.E_WRONG_TYPE,
          info,
          " must be a lock of redlatch (got a " + info.type() + " of another program);"
              + " forceReleaseAny() also removes locks of other libraries and data");
    }
    boolean isAlone = info.holders().size() == 1 && info.holding() == 1;
    return isAlone ? Optional.of(info.holders().get(0).tokenBytes()) : Optional.empty();
  }

  private static RedlatchException refused(Status status, LockInfo info, String why) {
    String name = info.name();
    return RedlatchException.of(status, "force-release", name, "lock " + Text.quoted(name) + why);
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.util.Optional;

/** A forced release without a token, and the holder that it removes. */
final class ForcedRelease {
  /**
   * The tries to remove one holder by its token: a lock that is handed off between the inspection
   * and the release has another token. Afterwards it is a lock in use, and all its holders are
   * removed.
   */
  private static final int TRIES = 3;

  private ForcedRelease() {}

  static void run(Redlatch client, byte[] name) {
    for (int tries = 0; tries < TRIES; tries++) {
      Optional<byte[]> token = tokenOf(client.inspect(name));
      if (token.isEmpty()) {
        break;
      }
      try {
        client.forceRelease(name, token.get());
        return;
      } catch (RedlatchException failure) {
        if (failure.status() != Status.E_NOT_HELD) {
          throw failure;
        }
      }
    }
    client.forceReleaseAny(name);
  }

  /** The token of the only holder of a lock of redlatch; empty if there are more. */
  private static Optional<byte[]> tokenOf(LockInfo info) {
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

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.time.Duration;
import java.util.Optional;

/**
 * What a client knows about one of its servers: {@link Redlatch#info}.
 *
 * @param address without secrets.
 * @param state whether it can be reached, and in a Redlock may vote.
 * @param reason of POLLED, NO_VOTE and AWAY; else "".
 * @param role as the server says it.
 * @param version such as "Valkey 8.0.1"; "" if it is not known.
 * @param clockDifference how far its clock was ahead of that of this host; empty if not known.
 */
public record NodeInfo(
    String address,
    State state,
    String reason,
    Role role,
    String version,
    Optional<Duration> clockDifference) {

  /** In the order of the numbers of the C ABI. */
  public enum State {
    /** No attempt to connect has ended yet. */
    UNKNOWN,
    /** Connected; of a Redlock: it may vote. */
    UP,
    /** The same, but waiting is by polling, which is slower. */
    POLLED,
    /** Of a Redlock: it must not vote now. */
    NO_VOTE,
    /** It cannot be reached. */
    AWAY
  }

  /** In the order of the numbers of the C ABI. */
  public enum Role {
    /** Not known. */
    UNKNOWN,
    /** A primary. */
    PRIMARY,
    /** A replica, which has no vote. */
    REPLICA,
    /** A member of a cluster. */
    CLUSTER_MEMBER
  }

  /** Whether it is connected and, in a Redlock, may vote. */
  public boolean votes() {
    return state == State.UP || state == State.POLLED;
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * A server of a client, as last known: {@link Redlatch#info}.
 *
 * @param address without secrets.
 * @param state of the connection and, in a Redlock, of the vote.
 * @param reason of POLLED, NO_VOTE and AWAY; else "".
 * @param role as the server says it.
 * @param version such as "Valkey 8.0.1"; "" if it is not known.
 * @param clockDifference how far its clock was ahead of that of this host; empty if not known.
 * @param findings of its last check; empty before the first.
 */
public record NodeInfo(
    String address,
    State state,
    String reason,
    Role role,
    String version,
    Optional<Duration> clockDifference,
    List<Finding> findings) {

  /** In the order of the numbers of the C ABI. */
  public enum State {
    /** No attempt to connect has ended yet. */
    UNKNOWN,
    /** Connected; in a Redlock: it may vote. */
    UP,
    /** Connected, but waiters poll, which is slower: a missing right, or a proxy. */
    POLLED,
    /** In a Redlock: connected, but without a vote now. */
    NO_VOTE,
    /** Not connected. */
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

  /** True if it is connected and, in a Redlock, may vote. */
  public boolean votes() {
    return state == State.UP || state == State.POLLED;
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.time.Duration;
import java.util.List;
import java.util.Optional;

// ---- NodeInfo: made of info_fields.def by tools/gen_info.py ----
/**
 * A server of a client, as last known: {@link Redlatch#info}.
 *
 * @param address address of the server, without secrets
 * @param state the state
 * @param reason why it is polled, has no vote or is away; else empty
 * @param role role, as the server reports it
 * @param version name and version, such as Valkey 8.0.1; empty if not known
 * @param clockDifference by which its clock was ahead of the local clock, as last measured; empty
 *     if not known
 * @param findings the findings of its last check; empty before the first
 */
public record NodeInfo(
    String address,
    State state,
    String reason,
    Role role,
    String version,
    Optional<Duration> clockDifference,
    List<Finding> findings) {
// ---- end of NodeInfo ----

  /** The state of a server. In the order of the numbers of the C ABI. */
  public enum State {
    /** No attempt to connect has ended yet. */
    UNKNOWN,
    /** Connected; the server of a Redlock may vote. */
    UP,
    /** Connected, but waiters poll, which is slower: a right is missing, or there is a proxy. */
    POLLED,
    /** A server of a Redlock that is connected, but has no vote now. */
    NO_VOTE,
    /** Not connected. */
    AWAY
  }

  /** The role of a server. In the order of the numbers of the C ABI. */
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

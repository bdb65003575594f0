// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;

/**
 * What is known about one lock at one moment, by the server's clock, which is only to be shown:
 * never compare it with this one's. No two are equal.
 *
 * @param nameBytes the name, to ask for the lock by
 * @param state what the key says
 * @param type that of the key, "none" when the lock is free
 * @param remaining until the lease ends on the server; empty for a key without expiry
 * @param fence the last one that the server gave, 0 for none known
 * @param ownerBytes of a lock in the format HASH, else none
 * @param holding how many hold it, also beyond those in holders
 * @param waiting how many wait, also beyond those in waiters
 * @param serverTime the server's clock
 * @param holders readers, or acquisitions of an owner
 * @param waiters in the order of the queue
 */
public record LockInfo(
    byte[] nameBytes,
    State state,
    String type,
    Optional<Duration> remaining,
    long fence,
    byte[] ownerBytes,
    long holding,
    long waiting,
    Instant serverTime,
    List<Holder> holders,
    List<Waiter> waiters) {

  /** The name, as UTF-8 says it. */
  public String name() {
    return Text.of(nameBytes);
  }

  /** The owner of a lock in the format HASH, as UTF-8 says it; else "". */
  public String owner() {
    return Text.of(ownerBytes);
  }

  @Override
  public String toString() {
    return "LockInfo[" + name() + ", " + state + ", fence " + fence + "]";
  }

  /** What the key of a lock says. */
  public enum State {
    /** Free. */
    FREE,
    /** A redlatch client holds it. */
    HELD,
    /** Another lock library holds it. */
    FOREIGN,
    /** A key of another type, which `type` names. */
    NO_LOCK
  }

  /**
   * A holder of a lock.
   *
   * @param tokenBytes or the value of a foreign key, for {@link Redlatch#forceRelease}
   * @param who host name and process id, or the option "holder"; "" for not said yet
   * @param labelBytes the label
   * @param mode how
   * @param since empty if unknown
   * @param remaining until the lease ends on the server; empty for a key without expiry
   */
  public record Holder(
      byte[] tokenBytes,
      String who,
      byte[] labelBytes,
      Lease.Mode mode,
      Optional<Instant> since,
      Optional<Duration> remaining) {

    /** The token or value, as UTF-8 says it. */
    public String token() {
      return Text.of(tokenBytes);
    }

    /** The label, as UTF-8 says it. */
    public String label() {
      return Text.of(labelBytes);
    }

    @Override
    public String toString() {
      return "Holder[" + token() + ", " + who + ", " + label() + ", " + mode + "]";
    }
  }

  /**
   * A waiter for a lock.
   *
   * @param token the token
   * @param who host name and process id, or the option {@code holder}; empty if not known
   * @param mode what for
   * @param since empty if unknown
   */
  public record Waiter(String token, String who, Lease.Mode mode, Optional<Instant> since) {}
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;

// ---- LockInfo: made of info_fields.def by tools/gen_info.py ----
/**
 * A snapshot of a lock. Its times come from the server's clock; do not compare them with the local
 * clock. No two are equal.
 *
 * @param nameBytes name of the lock
 * @param state the state
 * @param type type of the key; 'none' if the lock is free
 * @param remaining until the lease, or the period, ends on the server; empty for a key without
 *     expiry
 * @param fence the last fence that the server granted; 0 if not known; the holder's is up to 31
 *     higher after hand-offs in its client
 * @param ownerBytes owner of a reentrant lock; empty if it is free or of another kind
 * @param holding number of readers, or of leases of the owner, also those that are not listed
 * @param waiting number of waiters, also those that are not listed
 * @param used permits of a semaphore that are out; 0 for every other lock
 * @param limit the limit of the caller that got permits last; 0 if none are out
 * @param cap the limit that an operator has set for all callers; -1 without one
 * @param capRemaining until the cap ends; empty without an end of its own
 * @param serverTime the server's clock at the time of the snapshot; only to be shown
 * @param holders readers, a writer, or acquisitions of an owner
 * @param waiters the waiters, in the order of the queue
 * @param marks the periods of once in which a run has begun, in no order
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
    long used,
    long limit,
    long cap,
    Optional<Duration> capRemaining,
    Instant serverTime,
    List<Holder> holders,
    List<Waiter> waiters,
    List<Mark> marks) {
// ---- end of LockInfo ----

  /** The name of the lock, decoded as UTF-8. */
  public String name() {
    return Text.of(nameBytes);
  }

  /** The owner of a reentrant lock, decoded as UTF-8; else "". */
  public String owner() {
    return Text.of(ownerBytes);
  }

  @Override
  public String toString() {
    return "LockInfo[" + name() + ", " + state + ", fence " + fence + "]";
  }

  /** The state of a lock, according to its key. */
  public enum State {
    /** It has no holder. */
    FREE,
    /** A redlatch client holds it. */
    HELD,
    /** Another lock library holds it. */
    FOREIGN,
    /** The key has another type, which `type` names. */
    NO_LOCK
  }

  // ---- Holder: made of info_fields.def by tools/gen_info.py ----
  /**
   * A holder of a lock: a reader, a writer, or one acquisition of an owner.
   *
   * @param tokenBytes the token, or the value of a foreign key
   * @param who host name and process id, or the option holder; empty if not known: the holder has
   *     not waited, and has held for less than half a second, or the ACL user may not write it
   * @param permits permits of a semaphore that it has; 0 for every other lock
   * @param labelBytes the option label of the acquisition; empty without one
   * @param candidateBytes id of the candidate, from the option id; empty without one
   * @param recallable 1 if its client may only retain the lock, for no caller, and gives it up when
   *     another one asks: the server cannot tell; else 0
   * @param mode read, write, or upgrade: a reader that waits to write; write for every lock that is
   *     not a read-write lock
   * @param since when it was granted, joined the queue, or when the last run began or succeeded;
   *     empty if not known
   * @param remaining until the lease, or the period, ends on the server; empty for a key without
   *     expiry
   */
  public record Holder(
      byte[] tokenBytes,
      String who,
      long permits,
      byte[] labelBytes,
      byte[] candidateBytes,
      long recallable,
      Lease.Mode mode,
      Optional<Instant> since,
      Optional<Duration> remaining) {
  // ---- end of Holder ----

    /** The token or value, decoded as UTF-8. */
    public String token() {
      return Text.of(tokenBytes);
    }

    /** The label, decoded as UTF-8. */
    public String label() {
      return Text.of(labelBytes);
    }

    /** The id of a candidate, decoded as UTF-8; "" without one. */
    public String candidate() {
      return Text.of(candidateBytes);
    }

    @Override
    public String toString() {
      return "Holder[" + token() + ", " + who + ", " + label() + ", " + mode + "]";
    }
  }

  // ---- Waiter: made of info_fields.def by tools/gen_info.py ----
  /**
   * A waiter for a lock.
   *
   * @param token the token, or the value of a foreign key
   * @param who host name and process id, or the option holder; empty if not known: the holder has
   *     not waited, and has held for less than half a second, or the ACL user may not write it
   * @param candidateBytes id of the candidate, from the option id; empty without one
   * @param mode read, write, or upgrade: a reader that waits to write; write for every lock that is
   *     not a read-write lock
   * @param since when it was granted, joined the queue, or when the last run began or succeeded;
   *     empty if not known
   */
  public record Waiter(
      String token,
      String who,
      byte[] candidateBytes,
      Lease.Mode mode,
      Optional<Instant> since) {
  // ---- end of Waiter ----

    /** The id of a candidate, decoded as UTF-8; "" without one. */
    public String candidate() {
      return Text.of(candidateBytes);
    }
  }

  // ---- Mark: made of info_fields.def by tools/gen_info.py ----
  /**
   * A period of once in which a run has begun, and that has not ended.
   *
   * @param since when it was granted, joined the queue, or when the last run began or succeeded;
   *     empty if not known
   * @param remaining until the lease, or the period, ends on the server; empty for a key without
   *     expiry
   * @param keyBytes the text that names the period; empty without one
   * @param done 1 if a run of the period has succeeded; else 0
   * @param tries number of runs of the period
   */
  public record Mark(
      Optional<Instant> since,
      Optional<Duration> remaining,
      byte[] keyBytes,
      long done,
      long tries) {
  // ---- end of Mark ----

    /** The key, decoded as UTF-8. */
    public String key() {
      return Text.of(keyBytes);
    }

    /** True after a run of the period has succeeded. */
    public boolean isDone() {
      return done != 0;
    }

    @Override
    public String toString() {
      return "Mark[" + key() + ", " + (isDone() ? "done" : "not done") + ", " + tries + "]";
    }
  }
}

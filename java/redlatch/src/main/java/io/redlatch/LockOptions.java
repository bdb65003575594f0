// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_acquire_options;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Options of all that acquires. What each is by default suits most. Immutable: each method returns
 * another.
 */
public final class LockOptions {
  /** All the defaults. */
  public static final LockOptions DEFAULT = new LockOptions(List.of());

  /** How a lock stands in its key. All who use a lock must agree on it. */
  public enum Format {
    /** A string: mutexes, read-write locks, and most other libraries. */
    STRING,
    /** A hash of owner and count: reentrant locks, and Redisson's RLock. */
    HASH,
    /** That of Redisson's RReadWriteLock; the TTL is at most 30 s there. */
    HASH_RW
  }

  private interface Setter {
    int set(SWIGTYPE_p_rl_acquire_options options);
  }

  private record Option(Setter setter, String allowed) {}

  private final List<Option> options;

  private LockOptions(List<Option> options) {
    this.options = options;
  }

  private LockOptions with(Setter setter, String allowed) {
    List<Option> all = new ArrayList<>(options);
    all.add(new Option(setter, allowed));
    return new LockOptions(List.copyOf(all));
  }

  /**
   * How long the server keeps the lock without renewal, 10 ms to 7 days (30 s). It is renewed at a
   * third of that while it is held, whatever it is.
   */
  public LockOptions ttl(Duration ttl) {
    long ms = Text.ms(ttl);
    return with(
        made -> Rlc.acquire_options_set_ttl_ms(made, ms),
        "ttl(" + ttl + "): allowed are 10 ms to 7 days");
  }

  /** Whether the lease is renewed (true). If not, it ends by itself, as lost. */
  public LockOptions renew(boolean isOn) {
    return with(made -> Rlc.acquire_options_set_renew(made, isOn ? 1 : 0), "renew");
  }

  /** Ends the lease, as lost, after so long at the latest: 0 to 7 days, 0 for never (0). */
  public LockOptions maxHold(Duration limit) {
    long ms = Text.ms(limit);
    return with(
        made -> Rlc.acquire_options_set_max_hold_ms(made, ms),
        "maxHold(" + limit + "): allowed are 0 to 7 days");
  }

  /** Whether the server confirms a lock that was handed over (false): one more round trip. */
  public LockOptions confirm(boolean isOn) {
    return with(made -> Rlc.acquire_options_set_confirm(made, isOn ? 1 : 0), "confirm");
  }

  /**
   * How many times in a row a lock may pass between callers of one client before others have their
   * turn: 0 to 31 (16). 0: all wait in strict order.
   */
  public LockOptions maxLocalHandoffs(int grants) {
    return with(
        made -> Rlc.acquire_options_set_max_local_handoffs(made, grants),
        "maxLocalHandoffs(" + grants + "): allowed are 0 to 31");
  }

  /**
   * After how many grants in a row the lock is left free for a while, for libraries that poll for
   * it: 0 to 1,000,000, 0 for never (16, once one of them was seen to hold it).
   */
  public LockOptions yieldEvery(int grants) {
    return with(
        made -> Rlc.acquire_options_set_yield_every(made, grants),
        "yieldEvery(" + grants + "): allowed are 0 to 1000000");
  }

  /** For how long the lock is left free: 1 ms to a minute (150 ms). */
  public LockOptions yieldFor(Duration window) {
    long ms = Text.ms(window);
    return with(
        made -> Rlc.acquire_options_set_yield_ms(made, ms),
        "yieldFor(" + window + "): allowed are 1 ms to a minute");
  }

  /** A text that inspect() shows for the holder, of at most 256 bytes. */
  public LockOptions label(String label) {
    return label(Text.bytes(label, "label"));
  }

  /** As label(text), of bytes of any values. */
  public LockOptions label(byte[] label) {
    byte[] copy = Text.copy(label, "label");
    return with(
        made -> Rlc.acquire_options_set_label(made, copy),
        "label of " + copy.length + " bytes: allowed are 0 to 256");
  }

  /**
   * Names who acquires, 1 to 256 bytes of any values: an owner that reads may read again past those
   * who wait, and what would wait for itself fails with {@link Status#E_ALREADY_HELD}. Without one,
   * it waits.
   */
  public LockOptions owner(byte[] owner) {
    byte[] copy = Text.copy(owner, "owner");
    return with(
        made -> Rlc.acquire_options_set_owner(made, copy),
        "owner of " + copy.length + " bytes: allowed are 1 to 256");
  }

  /** How the lock stands in its key (STRING). */
  public LockOptions format(Format format) {
    int number = Text.given(format, "format").ordinal() + 1;
    return with(made -> Rlc.acquire_options_set_format(made, number), "format(" + format + ")");
  }

  /** For one call; freed by the caller. Null for all the defaults. */
  @Nullable SWIGTYPE_p_rl_acquire_options make(byte @Nullable [] reentrantOwner) {
    if (options.isEmpty() && reentrantOwner == null) {
      return null;
    }
    SWIGTYPE_p_rl_acquire_options made = Rlc.acquire_options_new();
    if (made == null) {
      throw RedlatchException.of(Status.E_NO_MEMORY, "acquire", "", "");
    }
    try {
      for (Option option : options) {
        check(option.setter.set(made), option.allowed);
      }
      if (reentrantOwner != null) {
        check(
            Rlc.acquire_options_set_reentrant(made, reentrantOwner),
            "an owner of " + reentrantOwner.length + " bytes: allowed are 1 to 256");
      }
      return made;
    } catch (RedlatchException failure) {
      Rlc.acquire_options_free(made);
      throw failure;
    }
  }

  private static void check(int number, String allowed) {
    Status status = Status.of(number);
    if (status != Status.OK) {
      throw RedlatchException.of(status, "acquire", "", allowed);
    }
  }
}

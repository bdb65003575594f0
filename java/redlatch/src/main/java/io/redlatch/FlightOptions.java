// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * Options of {@link Redlatch#singleFlight}. Immutable: each method returns a new object. The call
 * that uses the options reports an invalid option of the lock.
 */
public final class FlightOptions {
  /** All the defaults. */
  public static final FlightOptions DEFAULT = new FlightOptions(null, LockOptions.DEFAULT);

  private final @Nullable Duration wait;
  private final LockOptions lock;

  private FlightOptions(@Nullable Duration wait, LockOptions lock) {
    this.wait = wait;
    this.lock = lock;
  }

  /**
   * The longest wait for the value of another caller. Default: no limit.
   *
   * @throws RedlatchException with {@link Status#E_INVALID} if it is not above 0.
   */
  public FlightOptions wait(Duration limit) {
    if (Text.waitMs(limit) == 0) {
      throw RedlatchException.of(
          Status.E_INVALID, Flight.OP, "", "wait must be above 0 (got " + Text.text(limit) + ")");
    }
    return new FlightOptions(limit, lock);
  }

  /**
   * The options of the lock that the caller holds while it computes, such as its ttl, which is not
   * that of the value.
   */
  public FlightOptions with(LockOptions options) {
    return new FlightOptions(wait, Text.given(options, "options"));
  }

  NamedLock applyTo(NamedLock mutex) {
    return mutex.with(lock);
  }

  long waitMs() {
    return wait == null ? NamedLock.FOREVER : Text.waitMs(wait);
  }

  /** The options that are set. */
  @Override
  public String toString() {
    return "FlightOptions[" + (wait == null ? "" : "wait " + wait + ", ") + lock + "]";
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.Rlc;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * Options of {@link Redlatch#once}. Immutable: each method returns a new object. The call that uses
 * the options reports an invalid value.
 */
public final class OnceOptions {
  /** All the defaults. */
  public static final OnceOptions DEFAULT =
      new OnceOptions(new Run(new byte[0], 3), null, false, LockOptions.DEFAULT);

  /** The part that the server has to know. */
  record Run(byte[] key, int tries) {}

  private final Run run;
  private final @Nullable Duration wait;
  private final boolean isSkippedIfBusy;
  private final LockOptions lock;

  private OnceOptions(
      Run run, @Nullable Duration wait, boolean isSkippedIfBusy, LockOptions lock) {
    this.run = run;
    this.wait = wait;
    this.isSkippedIfBusy = isSkippedIfBusy;
    this.lock = lock;
  }

  /**
   * The text that names the period, such as the date: the job runs once for each text, which is
   * remembered for the whole period. Default: none.
   */
  public OnceOptions key(String text) {
    return key(Text.bytes(text, "key"));
  }

  /** As key(text), of any bytes. */
  public OnceOptions key(byte[] bytes) {
    Run other = new Run(Text.copy(bytes, "key"), run.tries);
    return new OnceOptions(other, wait, isSkippedIfBusy, lock);
  }

  /** The most runs of a period, if they fail. Allowed: 1 to 1000. Default: 3. */
  public OnceOptions tries(int count) {
    return new OnceOptions(new Run(run.key, count), wait, isSkippedIfBusy, lock);
  }

  /** The longest wait for a run that is under way. Default: no limit. */
  public OnceOptions wait(Duration limit) {
    Text.waitMs(limit);
    return new OnceOptions(run, limit, isSkippedIfBusy, lock);
  }

  /** Skip the job at once while another run is under way. Default: wait for its end. */
  public OnceOptions skipIfBusy(boolean isSkipped) {
    return new OnceOptions(run, wait, isSkipped, lock);
  }

  /** The options of the job's lock; maxLocalHandoffs is always 0. */
  public OnceOptions with(LockOptions options) {
    return new OnceOptions(run, wait, isSkippedIfBusy, Text.given(options, "options"));
  }

  Run run() {
    return run;
  }

  /** Null if the job is skipped, because another run is under way. */
  @Nullable Lease acquire(NamedLock mutex) throws InterruptedException {
    // A local hand-off would let several callers share a run.
    NamedLock chosen =
        mutex.with(lock).of(made -> Rlc.acquire_options_set_max_local_handoffs(made, 0));
    if (isSkippedIfBusy) {
      return chosen.tryAcquire(Duration.ZERO).orElse(null);
    }
    return wait == null ? chosen.acquire() : chosen.acquire(wait);
  }

  /** The options that are set. */
  @Override
  public String toString() {
    String busy = isSkippedIfBusy ? ", skipped if busy" : wait == null ? "" : ", wait " + wait;
    return "OnceOptions[key " + Text.quoted(Text.of(run.key)) + ", tries " + run.tries + busy
        + ", " + lock + "]";
  }
}

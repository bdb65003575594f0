// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.time.Duration;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A term in which this process leads an election. It is renewed in the background until it is
 * closed or lost. Any thread may use and close it. Keep it: a term that the program drops is kept
 * until the client is closed, with a warning in the log.
 */
public final class Term implements AutoCloseable {
  private final Lease lease;
  private final String id;
  private final @Nullable Runnable resignation;
  private volatile boolean isOver;

  /** `resignation` is called in place of the release; null: the lease is released. */
  Term(Lease lease, String id, @Nullable Runnable resignation) {
    this.lease = lease;
    this.id = id;
    this.resignation = resignation;
  }

  /** The name of the election. */
  public String name() {
    return lease.name();
  }

  /** The id of this candidate. */
  public String id() {
    return id;
  }

  /**
   * The number of the term, which rises from leader to leader. Pass it to the resource that you
   * write to, and let the resource refuse a lower one.
   */
  public long number() {
    return lease.fence();
  }

  /**
   * True while this candidate leads, by the local clock: it is false before the lease can end on
   * the server. Sends nothing.
   */
  public boolean isLeader() {
    return !isOver && lease.isHeld();
  }

  /**
   * Throws unless this candidate leads, by the local clock. Sends nothing. It does not stop a
   * thread that is paused between the check and its write: only a resource that refuses lower
   * terms does.
   *
   * @throws LockLostException with the reason, if the term was lost.
   * @throws RedlatchException with {@link Status#E_NOT_HELD} after resign().
   */
  public void checkLeader() {
    lease.checkHeld();
    if (isOver) {
      throw RedlatchException.of(Status.E_NOT_HELD, "check", name(), "this candidate has resigned");
    }
  }

  /** The time that is left without a renewal, by the local clock; zero if the term is over. */
  public Duration remaining() {
    return isOver ? Duration.ZERO : lease.remaining();
  }

  /**
   * Runs `action` in a thread of redlatch when the term is lost; at once if it is lost already. It
   * does not run after resign(). An exception of the action goes to the uncaught exception handler
   * of its thread.
   */
  public void onLost(Runnable action) {
    lease.onLost(action);
  }

  /** The same as onLost(action), in `executor`. */
  public void onLost(Runnable action, Executor executor) {
    lease.onLost(action, executor);
  }

  /**
   * Runs `action` with the reason when another party asks this leader to resign: {@link
   * Redlatch#resign(String, String)}. Otherwise as {@link Lease#onRecall(Consumer)}. The term
   * continues until resign(), unless it is that of a {@link LeaderElector}, which ends it.
   */
  public void onRecall(Consumer<String> action) {
    lease.onRecall(action);
  }

  /** The same as onRecall(action), in `executor`. */
  public void onRecall(Consumer<String> action, Executor executor) {
    lease.onRecall(action, executor);
  }

  /** The number of recalls of this term. As {@link Lease#recallCount()}. */
  public long recallCount() {
    return lease.recallCount();
  }

  /**
   * Resigns; the next candidate leads at once. {@link #isLeader} is false from now on.
   * Blocks for at most {@code command_timeout}, and is otherwise as {@link Lease#close}. A second
   * resign() does nothing.
   *
   * <p>For the term of a {@link LeaderElector} it is the same as {@link LeaderElector#resign}.
   *
   * @throws LockLostException if the term had ended before; another candidate may have led since.
   */
  public void resign() {
    end();
    if (resignation != null) {
      resignation.run();
    } else {
      lease.close();
    }
  }

  /** The same as resign(). */
  @Override
  public void close() {
    resign();
  }

  /** From now on it does not lead; the lock may be held for longer. */
  void end() {
    isOver = true;
  }

  @Override
  public String toString() {
    return "Term[" + name() + ", " + id + ", " + number() + (isLeader() ? "" : ", over") + "]";
  }
}

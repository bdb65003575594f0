// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_error;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_lease;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_request;
import java.lang.invoke.VarHandle;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * One hold of a lock. It is renewed in the background until it is closed or lost. Any thread may
 * use it and close it. Keep it: one that is dropped while it holds the lock goes on holding it
 * until its client is closed, with a warning in the log.
 */
public final class Lease implements AutoCloseable {
  /** What this process knows about a lease. */
  public enum State {
    /** Valid by the local clock, drift taken off. */
    HELD,
    /** Given back, by close() or by that of the client. */
    RELEASED,
    /** Not certain any more. */
    LOST,
    /** Handed over by detach(), or about to be. */
    DETACHED
  }

  /** How a lease holds its lock, or what a waiter waits for. */
  public enum Mode {
    /** Alone. */
    WRITE,
    /** Together with others that read. */
    READ,
    /** Of a waiter: it reads, and waits to write. */
    UPGRADE
  }

  /** What the cleaner has: the handle, and not the lease. */
  private record Hold(SWIGTYPE_p_rl_lease handle, CallSession session) implements Runnable {
    /** When nobody has the lease. */
    @Override
    public void run() {
      session.leave(handle);
    }
  }

  private final Object client; // a lock, or the client itself: it outlives its leases
  private final Hold hold;
  private final AtomicBoolean isClosed = new AtomicBoolean();
  private @Nullable CompletableFuture<LockLostException> lost;

  Lease(Object client, CallSession session, SWIGTYPE_p_rl_lease handle) {
    this.client = client;
    this.hold = new Hold(handle, session);
    session.enter();
    CallSession.CLEANER.register(this, hold);
    // It sees what others did under the lock: a call into the library promises nothing of that.
    VarHandle.acquireFence();
  }

  private <T> T ask(Function<SWIGTYPE_p_rl_lease, T> question) {
    try {
      return question.apply(hold.handle);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /** The name of the lock. */
  public String name() {
    return ask(Lease::nameOf);
  }

  static String nameOf(SWIGTYPE_p_rl_lease handle) {
    return Text.of(Text.read(buffer -> Rlc.lease_name(handle, buffer)));
  }

  /**
   * Rises with every new owner of the lock. Hand it to what you write to, and let that refuse a
   * lower one. 0 if the lease was attached, and for a Redlock that is not fenced.
   */
  public long fence() {
    return ask(Rlc::lease_fence);
  }

  /** The 32 characters that hold the lock on the server. */
  public String token() {
    return ask(handle -> Text.of(Text.read(buffer -> Rlc.lease_token(handle, buffer))));
  }

  /** How long it is valid by the local clock, drift taken off; zero when it is not held. */
  public Duration remaining() {
    return Duration.ofMillis(ask(Rlc::lease_remaining_ms));
  }

  /**
   * How often the owner of a reentrant lock held it when this lease was granted, with it; 1 for all
   * other locks.
   */
  public long holdCount() {
    return ask(Rlc::lease_hold_count);
  }

  /** WRITE, or READ of one that reads. */
  public Mode mode() {
    return Mode.values()[ask(Rlc::lease_mode) - 1];
  }

  /** Whether it is held, or why it is not. It does not ask the server. */
  public State state() {
    return State.values()[ask(Rlc::lease_state) - 1];
  }

  /** Why a lease was lost. In the order of the numbers of the C ABI. */
  public enum LostReason {
    /** The lease is not lost. */
    NONE,
    /** No renewal was confirmed in time, or there was none. */
    EXPIRED,
    /** The server no longer has the lease, and the lock has another holder. */
    TAKEN_OVER,
    /**
     * Treat it as GONE, the usual reason after a forced release. Rare: the lease was removed from
     * the server, which then granted a late request of the same waiter.
     */
    FORCED,
    /** maxHold was reached. */
    MAX_HOLD,
    /** Too few servers of a Redlock still have it. */
    NO_MAJORITY,
    /** Its client ended without a shutdown. Programs do not see this. */
    CLOSED,
    /** A defect of redlatch; the log has more. */
    DEFECT,
    /**
     * The server no longer has the lease: a restart or a failover without the data, DEL or
     * FLUSHALL, a forced release, an eviction or an expiry has removed it. No other holder was
     * seen.
     */
    GONE
  }

  /** Why it was lost; NONE if it was not. */
  public LostReason lostReason() {
    return LostReason.values()[ask(Rlc::lease_lost_reason)];
  }

  /** The same for people; "" if it was not lost. */
  public String lostText() {
    return ask(lease -> Text.of(Text.read(buffer -> Rlc.lease_lost_text(lease, buffer))));
  }

  /** Whether it is held, by the local clock. */
  public boolean isHeld() {
    return state() == State.HELD;
  }

  /**
   * Does nothing while the lease holds, by the local clock. It does not ask the server, and does
   * not stop a thread that is paused between this and its write: only a fence does.
   *
   * @throws LockLostException if it was lost, and why.
   * @throws RedlatchException with {@link Status#E_NOT_HELD} after close() and detach().
   */
  public void checkHeld() {
    RedlatchException failure = ask(Lease::whyNotHeld);
    if (failure != null) {
      throw failure;
    }
  }

  private static @Nullable RedlatchException whyNotHeld(SWIGTYPE_p_rl_lease handle) {
    if (Status.of(Rlc.lease_check(handle, null)) == Status.OK) {
      return null;
    }
    SWIGTYPE_p_rl_error err = Rlc.error_new();
    try {
      Status status = Status.of(Rlc.lease_check(handle, err));
      return RedlatchException.of(status, "check", nameOf(handle), Text.of(Rlc.error_message(err)));
    } finally {
      Rlc.error_free(err);
    }
  }

  /**
   * Has `action` run, in a thread of redlatch's, when the lease is lost; at once if it is. Not when
   * it is closed or detached. What it throws goes to the handler of its thread for what is not
   * caught.
   */
  public void onLost(Runnable action) {
    onLost(action, Threads::tell);
  }

  /** As onLost(action), in `executor`. */
  public void onLost(Runnable action, Executor executor) {
    lost()
        .thenRun(
            () -> {
              // A future would keep what fails to itself.
              try {
                executor.execute(action);
              } catch (RuntimeException | Error failure) {
                Threads.report(failure);
              }
            });
  }

  /**
   * Completes with the reason when the lease is lost, and never if it is closed or detached. What
   * depends on it runs in a thread of redlatch's.
   */
  public synchronized CompletableFuture<LockLostException> lost() {
    CompletableFuture<LockLostException> future = lost;
    if (future == null) {
      lost = future = watchLoss();
    }
    // Whoever cancels his own must not cancel that of others.
    return future.copy();
  }

  /** A lease has one watch: each would take the place of the one before. */
  private CompletableFuture<LockLostException> watchLoss() {
    CompletableFuture<LockLostException> future = new CompletableFuture<>();
    // It keeps this lease from being collected until it ends: whoever is to be told wants that.
    Pump.watch(
        (queue, tag) -> ask(handle -> Rlc.lease_watch(handle, queue, tag)),
        () -> {
          if (ask(Lease::whyNotHeld) instanceof LockLostException reason) {
            Threads.tell(() -> future.complete(reason));
          }
        });
    return future;
  }

  /**
   * Releases the lock. Waits for the answer, for at most {@code command_timeout}, and no
   * interrupt ends that. If none comes, the release continues in the background: a warning in the
   * log, and no failure of the work, which was protected. A second close() does nothing, nor does
   * one after release() or detach().
   *
   * @throws LockLostException if the lease had ended before: others may have worked at the same
   *     time.
   */
  @Override
  public void close() {
    State state = state();
    if (isClosed.getAndSet(true) || state == State.RELEASED || state == State.DETACHED) {
      return;
    }
    try {
      release();
    } catch (RedlatchException failure) {
      // Somebody else has released it meanwhile, or has closed the client.
      Status status = failure.status();
      boolean isOver = status == Status.E_NOT_HELD || status == Status.E_CLOSED;
      if (goesOn(status)) {
        Warnings.unanswered(failure);
      } else if (!isOver) {
        throw failure;
      }
    }
  }

  /** Whether what ended so is repeated in the background, and was no failure of the work. */
  static boolean goesOn(Status status) {
    switch (status) {
      case E_OUTCOME_UNKNOWN:
      case E_UNAVAILABLE:
      case E_SERVER:
      case E_DENIED:
        return true;
      default:
        return false;
    }
  }

  /**
   * As close(), but that it tells all.
   *
   * @return whether the lock is free: not so if its owner has other holds of it.
   * @throws LockLostException as close().
   * @throws RedlatchException with {@link Status#E_NOT_HELD} if it was given back before, or {@link
   *     Status#E_OUTCOME_UNKNOWN} if no answer came.
   */
  public boolean release() {
    return finish("release", Rlc::release_start) != Status.STILL_HELD;
  }

  /**
   * Extends the lease to `ttl` from now on, and renews it for as long from then on; {@link
   * LockOptions#ttl} has the range. A ttl that is shorter than the remaining one shortens the
   * deadline of this process only.
   *
   * @throws LockLostException if it was lost.
   */
  public void extend(Duration ttl) {
    long ms = Text.ms(ttl);
    finish("extend", handle -> Rlc.extend_start(handle, ms));
  }

  /**
   * Makes the reader the writer without letting go in between: at once if it reads alone, else when
   * the others are gone, in front of all who wait. It reads meanwhile, and goes on to if it fails.
   *
   * @throws NotAcquiredException if `wait` was over before.
   * @throws InterruptedException if the thread is interrupted; it reads on.
   * @throws RedlatchException with {@link Status#E_DEADLOCK} if another reader waits for this
   *     already: one of the two must give up.
   */
  public void upgrade(Duration wait) throws InterruptedException {
    upgrade(Text.waitMs(wait));
  }

  /** As upgrade(wait), as long as it takes. */
  public void upgrade() throws InterruptedException {
    upgrade(-1);
  }

  private void upgrade(long waitMs) throws InterruptedException {
    if (Thread.interrupted()) {
      throw new InterruptedException();
    }
    try (Request request = started("upgrade", handle -> Rlc.rw_upgrade_start(handle, waitMs))) {
      request.await();
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /** As upgrade(), but that it does not wait: false if others read. */
  public boolean tryUpgrade() {
    try {
      finish("upgrade", handle -> Rlc.rw_upgrade_start(handle, 0));
      return true;
    } catch (NotAcquiredException busy) {
      return false;
    }
  }

  /**
   * Makes the writer a reader without letting go in between; others that are next in line to read
   * enter.
   */
  public void downgrade() {
    finish("downgrade", Rlc::rw_downgrade_start);
  }

  /**
   * Hands the lease to another process: one {@link Redlatch#attach} with the token can take it
   * over. Renewal stops, and the lock stays until its TTL ends. Waits for the answer, for at most
   * {@code command_timeout}; an interrupt does not end the wait.
   *
   * @return the token to attach with.
   * @throws LockLostException if the lease was lost before.
   * @throws RedlatchException with {@link Status#E_NOT_HELD} if it was closed or detached before;
   *     {@link Status#E_OUTCOME_UNKNOWN} if no answer came: the lease is no longer held here, and
   *     may be attachable with token(). With {@link Status#E_UNAVAILABLE}, {@link Status#E_DENIED}
   *     and {@link Status#E_SERVER} it is held as before.
   */
  public String detach() {
    finish("detach", Rlc::lease_detach_start);
    return token();
  }

  private Request started(
      String op, Function<SWIGTYPE_p_rl_lease, @Nullable SWIGTYPE_p_rl_request> start) {
    // And others see what was done under this one.
    VarHandle.releaseFence();
    return Request.of(op, this::name, start.apply(hold.handle));
  }

  private Status finish(
      String op, Function<SWIGTYPE_p_rl_lease, @Nullable SWIGTYPE_p_rl_request> start) {
    try (Request request = started(op, start)) {
      return request.awaitUninterruptibly();
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  @Override
  public String toString() {
    return "Lease[" + name() + ", " + state() + ", fence " + fence() + "]";
  }
}

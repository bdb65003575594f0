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
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * One acquisition of a lock, or of several names together. It is renewed in the background until it
 * is closed or lost. Any thread may use and close it. Keep it: a held lease that the program drops
 * stays held until the client is closed, with a warning in the log.
 */
public final class Lease implements AutoCloseable {
  /** The state of a lease, as this process knows it. */
  public enum State {
    /** Valid by the local clock, less the drift. */
    HELD,
    /** Released, by close() of the lease or of the client. */
    RELEASED,
    /** No longer certain. */
    LOST,
    /** Handed over by detach(), or about to be. */
    DETACHED
  }

  /** The mode of a lease or of a waiter. */
  public enum Mode {
    /** Alone, as every lock except a read lock. */
    WRITE,
    /** Together with other readers. */
    READ,
    /** A waiter: a reader that waits to write. */
    UPGRADE
  }

  /** The part of a lease that the cleaner has: the handle, and not the lease. */
  private record Hold(SWIGTYPE_p_rl_lease handle, CallSession session) implements Runnable {
    /** Called when no reference to the lease is left. */
    @Override
    public void run() {
      session.leave(handle);
    }
  }

  private final Object client; // a lock, or the client itself: it outlives its leases
  private final Hold hold;
  private final List<String> names;
  private final AtomicBoolean isClosed = new AtomicBoolean();
  private final LeaseEvents events = new LeaseEvents(this);

  Lease(Object client, CallSession session, SWIGTYPE_p_rl_lease handle, List<String> names) {
    this.client = client;
    this.hold = new Hold(handle, session);
    this.names = names;
    session.enter();
    CallSession.CLEANER.register(this, hold);
    // This thread sees the writes of earlier holders: a call into the library does not promise it.
    VarHandle.acquireFence();
  }

  <T> T ask(Function<SWIGTYPE_p_rl_lease, T> question) {
    try {
      return question.apply(hold.handle);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /** The name of the lock; the first one of several. */
  public String name() {
    return ask(Lease::nameOf);
  }

  static String nameOf(SWIGTYPE_p_rl_lease handle) {
    return Text.of(Text.read(buffer -> Rlc.lease_name(handle, buffer)));
  }

  /**
   * The fencing number of this lease. Every new exclusive holder of a name gets a higher one: pass
   * it to the resource that you write to, and let the resource refuse a lower one. A reader's fence
   * is lower than that of every later writer; readers may share one. An attached lease has the
   * number that was passed to attach(). 0 for a Redlock without the option "fenced".
   */
  public long fence() {
    return ask(Rlc::lease_fence);
  }

  /**
   * The fence of each name, in the order of the names; one entry for a lock of one name. Names are
   * decoded as UTF-8; of names that are then the same text, the last one counts.
   */
  public Map<String, Long> fences() {
    return ask(
        handle -> {
          Map<String, Long> fences = new LinkedHashMap<>();
          for (int i = 0; i < names.size(); i++) {
            fences.put(names.get(i), Rlc.lease_part_fence(handle, i));
          }
          return Collections.unmodifiableMap(fences);
        });
  }

  /** The token that proves ownership to the server. {@link Redlatch#attach} takes it. */
  public String token() {
    return ask(handle -> Text.of(Text.read(buffer -> Rlc.lease_token(handle, buffer))));
  }

  /** The validity left, by the local clock, less the drift; zero if the lease is not held. */
  public Duration remaining() {
    return Duration.ofMillis(ask(Rlc::lease_remaining_ms));
  }

  /**
   * The number of acquisitions of the owner of a reentrant lock when this one was granted, this one
   * included. It does not change afterwards. 1 if the lock was granted to a waiter, and for locks
   * that are not reentrant.
   */
  public long holdCount() {
    return ask(Rlc::lease_hold_count);
  }

  /** The permits of a semaphore that this lease has; 1 for every other lock. */
  public int permits() {
    return ask(Rlc::lease_permits).intValue();
  }

  /** READ for a reader, else WRITE. */
  public Mode mode() {
    return Mode.values()[ask(Rlc::lease_mode) - 1];
  }

  /** The state of the lease, by the local clock. Sends nothing. */
  public State state() {
    return State.values()[ask(Rlc::lease_state) - 1];
  }

  /** The reason of a loss. In the order of the numbers of the C ABI. */
  public enum LostReason {
    /** The lease is not lost. */
    NONE,
    /** No renewal was confirmed in time, or there was none. */
    EXPIRED,
    /** The server no longer has the lease, and the lock has another holder. */
    TAKEN_OVER,
    /**
     * Rare: the lease was removed from the server, which then granted a late request of the same
     * waiter. Treat it as GONE, the usual reason after a forced release.
     */
    FORCED,
    /** The option maxHold was reached. */
    MAX_HOLD,
    /** Too few servers of a Redlock still have the lease. */
    NO_MAJORITY,
    /** The client ended without a shutdown. Programs do not see this. */
    CLOSED,
    /** A defect of redlatch was found; the log has more. */
    DEFECT,
    /**
     * The server no longer has the lease, and no other holder was seen. The causes are a restart or
     * a failover without the data, DEL or FLUSHALL, a forced release, an eviction or an expiry.
     */
    GONE
  }

  /** The reason of the loss; NONE if the lease is not lost. */
  public LostReason lostReason() {
    return LostReason.values()[ask(Rlc::lease_lost_reason)];
  }

  /** The reason of the loss in words; "" if the lease is not lost. */
  public String lostText() {
    return ask(lease -> Text.of(Text.read(buffer -> Rlc.lease_lost_text(lease, buffer))));
  }

  /** True while the lease is held, by the local clock. Sends nothing. */
  public boolean isHeld() {
    return state() == State.HELD;
  }

  /**
   * Throws unless the lease is held, by the local clock. Sends nothing. It does not stop a thread
   * that is paused between the check and its write: only a resource that refuses lower fences does.
   *
   * @throws LockLostException with the reason, if the lease was lost.
   * @throws RedlatchException with {@link Status#E_NOT_HELD} after close() and detach().
   */
  public void checkHeld() {
    RedlatchException failure = ask(Lease::whyNotHeld);
    if (failure != null) {
      throw failure;
    }
  }

  /** Null while the lease is held. */
  static @Nullable RedlatchException whyNotHeld(SWIGTYPE_p_rl_lease handle) {
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
   * Runs `action` in a thread of redlatch when the lease is lost; at once if it is lost already. It
   * does not run if the lease is closed or detached. An exception of the action goes to the
   * uncaught exception handler of its thread.
   */
  public void onLost(Runnable action) {
    onLost(action, Threads::tell);
  }

  /** The same as onLost(action), in `executor`. */
  public void onLost(Runnable action, Executor executor) {
    events.lost().thenRun(() -> LeaseEvents.execute(executor, action));
  }

  /**
   * Completes with the reason when the lease is lost, and never if it is closed or detached.
   * Dependent stages run in a thread of redlatch.
   */
  public CompletableFuture<LockLostException> lost() {
    return events.lost();
  }

  /**
   * Runs `action` with the reason, in a thread of redlatch, when the holder is asked to finish:
   * {@link Redlatch#recall}. It runs once for this lease, however many recalls come, and at once if
   * one has come already. It does not run if the lease ends before. Nothing is forced: the action
   * may end the work early, or do nothing. A lease that was attached hears no recalls: they go to
   * the client that has acquired it.
   *
   * <p>The reason is text of another party, without control characters, and may be empty. An
   * exception of the action goes to the uncaught exception handler of its thread.
   *
   * @throws RedlatchException with {@link Status#E_UNSUPPORTED} for a lease of a {@link Redlock}.
   */
  public void onRecall(Consumer<String> action) {
    onRecall(action, Threads::tell);
  }

  /** The same as onRecall(action), in `executor`. */
  public void onRecall(Consumer<String> action, Executor executor) {
    Text.given(action, "action");
    Text.given(executor, "executor");
    recalled()
        .thenAccept(reason -> LeaseEvents.execute(executor, () -> action.accept(reason)));
  }

  /**
   * The number of recalls that this lease has heard. Sends nothing. Without {@link #onRecall}, a
   * recall is heard with the next answer of the server, such as that to a renewal.
   */
  public long recallCount() {
    return ask(Rlc::lease_recall_count);
  }

  /**
   * Completes with the reason at the first recall, and never if the lease ends before. Dependent
   * stages run in a thread of redlatch.
   *
   * @throws RedlatchException as onRecall().
   */
  CompletableFuture<String> recalled() {
    return events.recalled();
  }

  /** The reason of the last recall; "" without one. */
  String recallReason() {
    return ask(
        handle -> Text.of(Text.read(buffer -> Rlc.lease_recall_reason(handle, buffer))));
  }

  /**
   * Completes when the lease is not held any more, for whatever reason. Dependent stages run in a
   * thread of redlatch.
   */
  CompletableFuture<Void> ended() {
    return events.ended();
  }

  /**
   * Releases the lock; the next waiter gets it at once. Blocks for at most {@code command_timeout};
   * an interrupt does not end it. If no answer comes, the release continues in the background, with
   * a warning in the log: the work was protected, and did not fail. A second close() does nothing,
   * nor does one after release() or detach().
   *
   * @throws LockLostException if the lease had ended before; others may have held the lock since.
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
      settle(failure);
    }
  }

  /** Throws the failure of a release if it is one of the work, too. */
  private static void settle(RedlatchException failure) {
    // Another thread has released it meanwhile, or has closed the client.
    Status status = failure.status();
    boolean isOver = status == Status.E_NOT_HELD || status == Status.E_CLOSED;
    if (goesOn(status)) {
      Warnings.unanswered(failure);
    } else if (!isOver) {
      throw failure;
    }
  }

  /** True if a release with this status is repeated in the background: the work did not fail. */
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
   * Releases the lock as close() does, and reports every result.
   *
   * @return false if the owner of a reentrant lock has other leases.
   * @throws LockLostException if the lease had ended before; others may have held the lock since.
   * @throws RedlatchException with {@link Status#E_NOT_HELD} if it was released or detached before.
   *     With {@link Status#E_OUTCOME_UNKNOWN} if no answer came; the release continues in the
   *     background until the lease would have ended.
   */
  public boolean release() {
    return finish("release", Rlc::release_start) != Status.STILL_HELD;
  }

  /**
   * Extends the lease to `ttl` from now; later renewals use this ttl. {@link LockOptions#ttl} has
   * the range. A ttl below the remaining one shortens only the deadline of this process. Blocks for
   * at most {@code command_timeout}.
   *
   * @throws LockLostException if the lease had ended.
   */
  public void extend(Duration ttl) {
    long ms = Text.ms(ttl);
    finish("extend", handle -> Rlc.extend_start(handle, ms));
  }

  /**
   * Turns this reader into the writer, without a release in between. The only reader becomes the
   * writer at once. Otherwise the upgrade waits at the head of the queue until the other readers
   * have left, for at most `wait`. If it fails, the lease continues to read, unless it was lost.
   * The fence rises.
   *
   * @throws NotAcquiredException if the wait timed out.
   * @throws InterruptedException if the thread is interrupted; the lease continues to read.
   * @throws LockLostException if the lease had ended.
   * @throws RedlatchException with {@link Status#E_DEADLOCK} if another reader waits to upgrade, or
   *     the owner of this lease has another read lease; close this one.
   */
  public void upgrade(Duration wait) throws InterruptedException {
    upgrade(Text.waitMs(wait));
  }

  /** The same as upgrade(wait), without a limit. */
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

  /** The same as upgrade(), with one try. Returns false if there are other readers. */
  public boolean tryUpgrade() {
    try {
      finish("upgrade", handle -> Rlc.rw_upgrade_start(handle, 0));
      return true;
    } catch (NotAcquiredException busy) {
      return false;
    }
  }

  /**
   * Turns this writer into a reader, without a release in between. Readers that are next in the
   * queue enter. Blocks for at most {@code command_timeout}.
   *
   * @throws LockLostException if the lease had ended.
   */
  public void downgrade() {
    finish("downgrade", Rlc::rw_downgrade_start);
  }

  /**
   * Hands the lease over to another process: one {@link Redlatch#attach} there can take it. Renewal
   * stops, and the lock stays until its ttl ends. Store {@link #fence} beside the token. Blocks for
   * at most {@code command_timeout}; an interrupt does not end it.
   *
   * @return the token to attach with.
   * @throws LockLostException if the lease was lost.
   * @throws RedlatchException with {@link Status#E_NOT_HELD} if it was closed or detached before.
   *     With {@link Status#E_OUTCOME_UNKNOWN} if no answer came; the lease is no longer held here,
   *     and another process may be able to attach it with token(). With {@link
   *     Status#E_UNAVAILABLE}, {@link Status#E_DENIED} and {@link Status#E_SERVER} the lease is
   *     held as before.
   */
  public String detach() {
    finish("detach", Rlc::lease_detach_start);
    return token();
  }

  /** Begins a run of {@link Redlatch#once}. Returns false if the job is skipped. */
  boolean beginRun(OnceOptions.Run run, long everyMs) {
    return finish(
            "once", handle -> Rlc.once_begin_start(handle, run.key(), everyMs, run.tries()))
        == Status.OK;
  }

  /**
   * Notes that the run has succeeded, and releases the lock in the same step. A missing answer is
   * no exception, as for close().
   *
   * @throws LockLostException if the lease had ended before: the run counts as failed.
   */
  void endRun(OnceOptions.Run run) {
    try {
      end("once", handle -> Rlc.once_done_start(handle, run.key()));
    } catch (RedlatchException failure) {
      if (!goesOn(failure.status())) {
        throw failure;
      }
      Warnings.unnoted(failure);
    }
  }

  /**
   * Stores the value of a flight, and releases the lock in the same step. A missing answer is no
   * exception, as for close().
   *
   * @throws LockLostException if the lease had ended before: others may have another value.
   * @throws RedlatchException with {@link Status#E_SERVER} or {@link Status#E_DENIED} if the server
   *     could not store it.
   */
  void storeValue(byte[] value, long ttlMs) {
    try {
      end(Flight.OP, handle -> Rlc.flight_store_start(handle, value, ttlMs));
    } catch (RedlatchException failure) {
      Status status = failure.status();
      if (status != Status.E_OUTCOME_UNKNOWN && status != Status.E_UNAVAILABLE) {
        throw failure;
      }
      Warnings.unstored(failure);
    }
  }

  /** Reports a failure to the callers that wait, in the same step. Otherwise as close(). */
  void failFlight(byte[] type, byte[] text) {
    try {
      end(Flight.OP, handle -> Rlc.flight_fail_start(handle, type, text));
    } catch (RedlatchException failure) {
      settle(failure);
    }
  }

  /** Releases the lock by `start`, which also notes how the work went. */
  private void end(
      String op, Function<SWIGTYPE_p_rl_lease, @Nullable SWIGTYPE_p_rl_request> start) {
    try {
      finish(op, start);
    } finally {
      // A close() would report a loss for a second time.
      isClosed.set(!isHeld());
    }
  }

  private Request started(
      String op, Function<SWIGTYPE_p_rl_lease, @Nullable SWIGTYPE_p_rl_request> start) {
    // The next holder sees all writes that were made under this lease.
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

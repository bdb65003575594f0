// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * Campaigns in an election in the background, again after each term, until it is closed.
 *
 * <pre>{@code
 * try (LeaderElector elector =
 *     client.election("report").elector()
 *         .onElected(term -> worker.start(term.number()))
 *         .onRevoked(term -> worker.stop())
 *         .start()) {
 *   serve();
 * }
 * }</pre>
 *
 * <p>The callbacks start work and stop it, and return:
 *
 * <ul>
 *   <li>onElected and onNewLeader run in one thread, one after the other. A term does not end when
 *       onElected returns.
 *   <li>onRevoked runs in another thread, as soon as the term ends, once for each onElected that
 *       has begun. If onElected still runs then, its thread is interrupted, and onRevoked runs when
 *       it has returned, but at the latest 1 s later, beside it. An onElected that takes longer
 *       checks {@link Term#isLeader} before it starts anything.
 *   <li>The next campaign begins when both have returned: onElected of the next term sees what they
 *       have done.
 *   <li>A callback that runs for longer than 5 s is named in the log, the logger {@code
 *       io.redlatch}. So is an exception of a callback.
 * </ul>
 *
 * <p>A term ends in one of these ways:
 *
 * <ul>
 *   <li>It is lost: {@link Term#isLeader} is false before the lease can end on the server, and
 *       onRevoked begins then. The next campaign follows after a delay, of 1 s, and of twice the
 *       last one up to 30 s; a term that has lasted longer than 30 s sets it back to 1 s.
 *   <li>resign() or close() is called: isLeader() is false at once, and the lock is released when
 *       the callbacks have returned, so that no other candidate leads before.
 *   <li>Another party asks the leader to resign, by {@link Redlatch#resign(String, String)}. The
 *       same follows as after resign(), with the delay of a loss, so that another candidate leads
 *       first. {@link Term#onRecall} has the reason.
 *   <li>onElected throws. The same follows as after resign(), with the delay of a loss.
 * </ul>
 *
 * <p>An exception while it campaigns never means that it leads. It is logged, and the next campaign
 * follows after the same delay. {@link Status#E_INVALID}, {@link Status#E_DENIED}, {@link
 * Status#E_UNSUPPORTED} and {@link Status#E_CLOSED} end the elector: {@link #failure} has the
 * reason. Close the elector before its client: close() of the client releases the lock at once.
 *
 * <p>Its threads do not keep the process running. It installs no signal handler and no shutdown
 * hook.
 */
public final class LeaderElector implements AutoCloseable {
  /** The longest wait of close() for the callbacks. Tests change it. */
  static volatile long closeWaitMs = 10_000;

  /** The callbacks of an elector, all of them optional. For one thread at a time. */
  public static final class Builder {
    private final Election election;
    private ElectionAction<Term> onElected = term -> {};
    private ElectionAction<Term> onRevoked = term -> {};
    private @Nullable ElectionAction<Leader> onNewLeader;

    Builder(Election election) {
      this.election = election;
    }

    /** Called when this candidate leads. It is interrupted if the term ends before it returns. */
    public Builder onElected(ElectionAction<Term> action) {
      onElected = Text.given(action, "onElected");
      return this;
    }

    /** Called once when the term of an onElected ends, for whatever reason. */
    public Builder onRevoked(ElectionAction<Term> action) {
      onRevoked = Text.given(action, "onRevoked");
      return this;
    }

    /**
     * Called with the present leader, and then with each new one, which may be this candidate.
     * Otherwise as {@link Election#observe}.
     */
    public Builder onNewLeader(ElectionAction<Leader> action) {
      onNewLeader = Text.given(action, "onNewLeader");
      return this;
    }

    /**
     * Starts to campaign. Does not block.
     *
     * @throws RedlatchException with {@link Status#E_INVALID} if the id or an option is wrong.
     */
    public LeaderElector start() {
      election.check();
      LeaderElector elector = new LeaderElector(this);
      try {
        elector.start(onNewLeader);
        return elector;
      } catch (RuntimeException | Error failure) {
        elector.end();
        throw failure;
      }
    }
  }

  private final Election election;
  private final Campaigner campaigner;
  private final Thread thread;
  private final ExecutorService callbacks = Executors.newSingleThreadExecutor(this::newThread);
  private volatile @Nullable Thread callbackThread;
  private volatile @Nullable LeaderObserver observer;

  private LeaderElector(Builder builder) {
    election = builder.election;
    campaigner =
        new Campaigner(
            election, new TermRun.Callbacks(builder.onElected, builder.onRevoked, callbacks));
    thread = Threads.daemon("redlatch-elector", campaigner);
  }

  private Thread newThread(Runnable work) {
    return callbackThread = Threads.daemon("redlatch-elected", work);
  }

  private void start(@Nullable ElectionAction<Leader> onNewLeader) {
    if (onNewLeader != null) {
      observer =
          election.observe(leader -> leader.ifPresent(found -> announce(onNewLeader, found)));
    }
    campaigner.ended().whenComplete((nothing, failure) -> end());
    thread.start();
  }

  private void announce(ElectionAction<Leader> onNewLeader, Leader leader) {
    try {
      callbacks.execute(
          new ElectionCall<>("onNewLeader", election.name(), onNewLeader, leader));
    } catch (RejectedExecutionException closed) {
      // It has ended.
    }
  }

  private void end() {
    LeaderObserver started = observer;
    if (started != null) {
      started.close();
    }
    callbacks.shutdown();
  }

  /** The election, with the id and the options of this candidate. */
  public Election election() {
    return election;
  }

  /** True while this candidate leads, by the local clock. Sends nothing. */
  public boolean isLeader() {
    return term().isPresent();
  }

  /** The present term; empty while this candidate does not lead. Sends nothing. */
  public Optional<Term> term() {
    return campaigner.term();
  }

  /**
   * Resigns the present term, and campaigns again behind the candidates that wait; without waiting
   * candidates it soon leads again. Does not block. Does nothing while this candidate does not
   * lead.
   */
  public void resign() {
    campaigner.resign();
  }

  /** The reason why the elector has ended by itself; empty while it runs, and after close(). */
  public Optional<RedlatchException> failure() {
    try {
      campaigner.ended().getNow(null);
      return Optional.empty();
    } catch (CompletionException failure) {
      return Optional.of((RedlatchException) failure.getCause());
    }
  }

  /**
   * Completes when the elector has ended: after close(), when the last callback has returned and
   * the lock is released; or with the exception that {@link #failure} returns.
   */
  public CompletableFuture<Void> ended() {
    return campaigner.ended().copy();
  }

  /**
   * Resigns, and ends the campaign; nothing is left in the queue. Waits until the callbacks have
   * returned and the lock is released, for at most 10 s, also through an interrupt. A callback
   * that still runs then is logged, and keeps the lock until it returns, or the process ends. In a
   * callback it does not wait. A second close() does the same.
   */
  @Override
  public void close() {
    campaigner.close();
    Thread current = Thread.currentThread();
    if (current != thread && current != callbackThread) {
      awaitEnd();
    }
  }

  private void awaitEnd() {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(closeWaitMs);
    boolean isInterrupted = false;
    while (true) {
      try {
        campaigner.ended().get(end - System.nanoTime(), TimeUnit.NANOSECONDS);
        break;
      } catch (InterruptedException interrupted) {
        isInterrupted = true;
      } catch (TimeoutException late) {
        Warnings.closeUnfinished(election.name());
        break;
      } catch (ExecutionException failure) {
        break;
      }
    }
    if (isInterrupted) {
      Thread.currentThread().interrupt();
    }
  }

  @Override
  public String toString() {
    return "LeaderElector[" + election.name() + ", " + election.id()
        + (isLeader() ? ", leads" : "") + "]";
  }
}

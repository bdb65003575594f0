// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch.shedlock;

import io.redlatch.Lease;
import io.redlatch.LockLostException;
import io.redlatch.LockOptions;
import io.redlatch.NamedLock;
import io.redlatch.Redlatch;
import io.redlatch.RedlatchException;
import io.redlatch.Redlock;
import io.redlatch.Status;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import net.javacrumbs.shedlock.core.AbstractSimpleLock;
import net.javacrumbs.shedlock.core.ExtensibleLockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.support.LockException;
import org.jspecify.annotations.Nullable;

/**
 * Takes the locks of ShedLock's tasks with redlatch, under their own names.
 *
 * <p>A task is protected for its lockAtMostFor from its start, also while the server is away, and
 * with any clocks of the hosts. {@link io.redlatch.LockOptions#ttl} has the range. The lock is not
 * renewed: wrap this in ShedLock's KeepAliveLockProvider for that. A task that runs longer is not
 * stopped, and a warning in the log reports it when it ends.
 *
 * <p>A failure of the server is a {@link LockException} with the {@link RedlatchException} as its
 * cause. The caller closes the client when the tasks have ended: close() releases the locks of
 * running tasks.
 */
public final class RedlatchLockProvider implements ExtensibleLockProvider {
  private static final Logger LOGGER = System.getLogger("io.redlatch");

  private final Function<String, NamedLock> locks;

  /** Leaves the lock of a lease as it is, and returns what ends it later; null if it is lost. */
  private final Function<Lease, @Nullable Runnable> leaving;

  /**
   * Makes a provider of a client. The lock of a task that ends before its lockAtLeastFor is kept
   * until then, also if the client is closed meanwhile.
   *
   * <ul>
   *   <li>If the process ends, the lock is kept until the end of lockAtMostFor.
   *   <li>If the server cannot be asked, closing the client releases the lock early.
   * </ul>
   */
  public RedlatchLockProvider(Redlatch client) {
    this(client::lock, lease -> leave(client, lease));
  }

  /**
   * Makes a provider of a Redlock. Otherwise as that of a client, except that closing the Redlock
   * releases the lock of a task that has ended, even before its lockAtLeastFor: a lease on several
   * servers cannot be attached.
   */
  public RedlatchLockProvider(Redlock redlock) {
    this(redlock::lock, lease -> lease::close);
  }

  private RedlatchLockProvider(
      Function<String, NamedLock> locks, Function<Lease, @Nullable Runnable> leaving) {
    this.locks = locks;
    this.leaving = leaving;
  }

  /** Tries once; empty if the lock is held or waited for. */
  @Override
  public Optional<SimpleLock> lock(LockConfiguration wanted) {
    LockOptions options = LockOptions.DEFAULT.ttl(wanted.getLockAtMostFor()).renew(false);
    try {
      Optional<Lease> lease = locks.apply(wanted.getName()).with(options).tryAcquire();
      return lease.map(held -> new Lock(wanted, held));
    } catch (RedlatchException failure) {
      throw new LockException(failure.getMessage(), failure);
    }
  }

  private static @Nullable Runnable leave(Redlatch client, Lease lease) {
    try {
      lease.detach(); // Held, it would be released by close().
    } catch (RedlatchException failure) {
      if (lease.isHeld()) {
        return lease::close;
      }
      if (failure.status() != Status.E_OUTCOME_UNKNOWN) {
        return null;
      }
    }
    String token = lease.token();
    return () -> client.attach(lease.name(), token).close();
  }

  /** It waits for the server, and the common pool is for what does not. */
  private static void start(Runnable work) {
    Thread thread = new Thread(null, work, "redlatch-shedlock", 0, false);
    thread.setDaemon(true);
    thread.start();
  }

  private final class Lock extends AbstractSimpleLock {
    private final Lease lease;
    private final long notBeforeNs;

    Lock(LockConfiguration configuration, Lease lease) {
      super(configuration);
      this.lease = lease;
      notBeforeNs = System.nanoTime() + configuration.getLockAtLeastFor().toNanos();
    }

    @Override
    protected void doUnlock() {
      long leftNs = notBeforeNs - System.nanoTime();
      Runnable end = leftNs > 0 && lease.isHeld() ? leaving.apply(lease) : null;
      if (end != null) {
        CompletableFuture.delayedExecutor(leftNs, TimeUnit.NANOSECONDS, RedlatchLockProvider::start)
            .execute(() -> endLater(end));
        return;
      }
      // No provider of ShedLock fails a task that has done its work, though others may have run.
      if (lease.state() == Lease.State.RELEASED) {
        LOGGER.log(
            Level.WARNING, "the client of a task of ShedLock was closed, and its lock released");
        return;
      }
      try {
        lease.close();
      } catch (LockLostException lost) {
        LOGGER.log(Level.WARNING, "a task of ShedLock went on without its lock", lost);
      } catch (RedlatchException failure) {
        throw new LockException(failure.getMessage(), failure);
      }
    }

    private void endLater(Runnable end) {
      try {
        end.run();
      } catch (RedlatchException failure) {
        // It is free already, or has been left to its TTL by close().
        Status status = failure.status();
        if (status != Status.E_NOT_HELD && status != Status.E_LOST && status != Status.E_CLOSED) {
          LOGGER.log(Level.WARNING, "a lock is kept for all its lockAtMostFor", failure);
        }
      }
    }

    /** An extended lock that ends early is released then, unless the process has ended. */
    @Override
    protected Optional<SimpleLock> doExtend(LockConfiguration wanted) {
      try {
        lease.extend(wanted.getLockAtMostFor());
        return Optional.of(new Lock(wanted, lease));
      } catch (LockLostException lost) {
        return Optional.empty();
      } catch (RedlatchException failure) {
        throw new LockException(failure.getMessage(), failure);
      }
    }
  }
}

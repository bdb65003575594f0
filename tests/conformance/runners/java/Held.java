// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import io.redlatch.Lease;
import io.redlatch.NotAcquiredException;
import io.redlatch.Status;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** The last lease of a lock, also after its release. */
final class Held implements Holding {
  private static final long LOOK_NS = TimeUnit.MILLISECONDS.toNanos(20);

  private final Lease lease;
  private final Recalls recalls;

  /** Of a mutex, which is given back as by the end of a block, once. */
  private boolean isBlock;

  Held(Lease lease, boolean isMutex) {
    this.lease = lease;
    recalls = new Recalls(lease::onRecall, () -> OptionalLong.of(lease.recallCount()));
    isBlock = isMutex;
  }

  @Override
  public Answer run(String op, Values values) throws InterruptedException {
    switch (op) {
      case "upgrade":
        return upgrade(values);
      case "downgrade":
        lease.downgrade();
        return Answer.ok();
      case "check":
        lease.checkHeld();
        return Answer.ok();
      case "extend":
        lease.extend(values.duration("ttl_ms"));
        return Answer.ok();
      case "wait_lost":
        return waitLost(values);
      case "recalled":
        return recalls.await(values);
      case "detach":
        String token = lease.detach();
        return show().add("token", token);
      case "show":
        return show();
      default:
        throw new IllegalArgumentException(op);
    }
  }

  Answer upgrade(Values values) throws InterruptedException {
    try {
      if (values.isEndless()) {
        lease.upgrade();
      } else {
        lease.upgrade(values.duration("wait_ms"));
      }
      return Answer.ok();
    } catch (NotAcquiredException refused) {
      return Answer.of(refused);
    }
  }

  /** Only a lock that can be held more than once is asked whether it is free. */
  @Override
  public Answer release() {
    if (Defects.has("ignore_release")) {
      return Answer.ok();
    }
    if (isEndOfBlock()) {
      Logged.during(lease::close);
      return Answer.ok();
    }
    boolean isFree = lease.release();
    boolean isCounted = !Defects.has("forget_count");
    return isFree || !isCounted ? Answer.ok() : new Answer(Status.STILL_HELD);
  }

  /** A block that ends after the release of its lease says nothing. */
  private synchronized boolean isEndOfBlock() {
    boolean isEnd = isBlock && (lease.isHeld() || lease.state() == Lease.State.LOST);
    isBlock = false;
    return isEnd;
  }

  /** A loss is told by a future; that a lease has ended otherwise, by its state. */
  private Answer waitLost(Values values) throws InterruptedException {
    CompletableFuture<?> lost = lease.lost();
    long limitNs = TimeUnit.MILLISECONDS.toNanos(values.number("wait_ms"));
    long startNs = System.nanoTime();
    long leftNs = limitNs;
    try {
      do {
        Lease.State state = lease.state();
        if (state == Lease.State.LOST) {
          lost.get();
          return Answer.ok().add("state", state);
        }
        if (state != Lease.State.HELD) {
          return Answer.ok().add("state", state);
        }
        try {
          lost.get(values.isEndless() ? LOOK_NS : Math.min(leftNs, LOOK_NS), TimeUnit.NANOSECONDS);
        } catch (TimeoutException notYet) {
          leftNs = limitNs - (System.nanoTime() - startNs);
        }
      } while (values.isEndless() || leftNs > 0);
    } catch (ExecutionException failure) {
      throw new AssertionError(failure);
    }
    return Answer.ok().add("state", Lease.State.HELD);
  }

  private Answer show() {
    return Answer.ok()
        .add("state", lease.state())
        .add("remaining_ms", lease.remaining().toMillis())
        .add("fence", lease.fence())
        .add("mode", lease.mode())
        .add("lost", lease.lostReason());
  }
}

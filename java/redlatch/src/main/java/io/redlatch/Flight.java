// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.redlatch.internal.rlc.RlcConstants;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;

/** A call of {@link Redlatch#singleFlight}. */
final class Flight {
  static final String OP = "single-flight";

  /** The innermost flight that the thread computes. */
  private static final ThreadLocal<Flight> COMPUTED = new ThreadLocal<>();

  /** Either of the two. */
  private record Landing(byte @Nullable [] value, @Nullable Lease lease) {}

  private final Redlatch client;
  private final byte[] key;
  private final long ttlMs;
  private final @Nullable Flight outer;

  /** Refuses what would fail after the value has been computed, or would never end. */
  Flight(Redlatch client, byte[] key, Duration ttl) {
    this.client = client;
    this.key = key;
    ttlMs = Text.ms(ttl);
    outer = COMPUTED.get();
    if (ttlMs < RlcConstants.RL_MIN_TTL_MS || ttlMs > RlcConstants.RL_MAX_TTL_MS) {
      String limits =
          RlcConstants.RL_MIN_TTL_MS + " ms to "
              + Duration.ofMillis(RlcConstants.RL_MAX_TTL_MS).toDays() + " days";
      throw failure(Status.E_INVALID, "ttl must be " + limits + " (got " + Text.text(ttl) + ")");
    }
    for (Flight around = outer; around != null; around = around.outer) {
      if (around.client == client && Arrays.equals(around.key, key)) {
        throw failure(
            Status.E_ALREADY_HELD, "this thread computes the value, and would wait for itself");
      }
    }
  }

  private RedlatchException failure(Status status, String said) {
    return RedlatchException.of(status, OP, Text.of(key), said);
  }

  /** `lock` starts a flight when it is acquired. */
  byte[] run(NamedLock lock, long waitMs, Callable<byte[]> work) throws Exception {
    Landing landing = lock.await(OP, waitMs, request -> land(lock, request));
    return landing.value != null ? landing.value : compute(landing.lease, work);
  }

  private static Landing land(NamedLock lock, Request request) {
    byte[] value = request.flightValue();
    return new Landing(value, value == null ? lock.leaseOf(request) : null);
  }

  private byte[] compute(Lease lease, Callable<byte[]> work) throws Exception {
    try (lease) {
      byte[] value = call(lease, work);
      lease.storeValue(value, ttlMs);
      return value;
    }
  }

  private byte[] call(Lease lease, Callable<byte[]> work) throws Exception {
    COMPUTED.set(this);
    try {
      return checked(work.call());
    } catch (Throwable failure) {
      // After an interrupt the lease is only closed: the next caller that waits computes.
      if (!(failure instanceof InterruptedException) && !Thread.currentThread().isInterrupted()) {
        tell(lease, failure);
      }
      throw failure;
    } finally {
      leave();
    }
  }

  private void leave() {
    if (outer == null) {
      COMPUTED.remove();
    } else {
      COMPUTED.set(outer);
    }
  }

  private byte[] checked(byte @Nullable [] value) {
    if (value == null || value.length > RlcConstants.RL_MAX_VALUE_BYTES) {
      throw failure(
          Status.E_INVALID,
          "the value must be a byte[] of at most " + RlcConstants.RL_MAX_VALUE_BYTES
              + " bytes (got " + (value == null ? "null" : value.length) + ")");
    }
    return value;
  }

  private static void tell(Lease lease, Throwable failure) {
    try {
      lease.failFlight(failure.getClass().getName().getBytes(UTF_8), textOf(failure));
    } catch (RedlatchException ofTheLease) {
      failure.addSuppressed(ofTheLease);
    }
  }

  /** The message, in which half a character becomes a question mark; empty without one. */
  private static byte[] textOf(Throwable failure) {
    try {
      String message = failure.getMessage();
      return (message == null ? "" : message).getBytes(UTF_8);
    } catch (RuntimeException | Error ofTheMessage) {
      return new byte[0]; // The failure itself is thrown.
    }
  }
}

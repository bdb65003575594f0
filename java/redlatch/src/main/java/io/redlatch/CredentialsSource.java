// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.RlcConstants;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_client;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/** Asks a {@link CredentialsProvider} when the library wants credentials. */
final class CredentialsSource {
  private static final Duration SHORTEST = Duration.ofMillis(RlcConstants.RL_MIN_CREDENTIALS_MS);
  private static final long NO_END_MS = -1;
  private static final long PAUSE_MS = 1000;

  /** The handle, not the client: the client may be collected, which ends this. */
  private final SWIGTYPE_p_rl_client handle;

  private final CredentialsProvider provider;
  private boolean isClosed;
  private long tag;

  CredentialsSource(SWIGTYPE_p_rl_client handle, CredentialsProvider provider) {
    this.handle = handle;
    this.provider = provider;
  }

  /** Asked once. A provider may wait, which the pump may not. */
  synchronized void watch() {
    if (!isClosed) {
      tag =
          Pump.watch(
              (queue, tag) -> Rlc.client_credentials_watch(handle, queue, tag),
              () -> Threads.tell(this::ask));
    }
  }

  /** Whatever the provider does: without an answer and a watch it would not be asked again. */
  private void ask() {
    Object answer = answer();
    repeat(() -> give(answer));
    repeat(this::watch);
  }

  /** Credentials, or why there are none. */
  private Object answer() {
    try {
      Credentials given = provider.credentials();
      return given == null ? "credentials() must not return null" : given;
    } catch (Throwable reason) {
      return textOf(reason);
    }
  }

  private static String textOf(Throwable reason) {
    try {
      return reason.toString();
    } catch (Throwable ofTheText) {
      return reason.getClass().getName();
    }
  }

  /** Until there is memory for it. */
  private void repeat(Runnable step) {
    while (!isClosed()) {
      try {
        step.run();
        return;
      } catch (RuntimeException | Error noMemory) {
        pause();
      }
    }
  }

  private static void pause() {
    try {
      Thread.sleep(PAUSE_MS);
    } catch (InterruptedException early) {
      // This thread is ours, and its interrupt has no other meaning.
    }
  }

  private synchronized boolean isClosed() {
    return isClosed;
  }

  private synchronized void give(Object answer) {
    if (isClosed) {
      return;
    }
    String reason = answer instanceof Credentials given ? set(given) : answer.toString();
    if (reason.isEmpty()) {
      return;
    }
    byte[] text = reason.getBytes(StandardCharsets.UTF_8);
    Status status = Status.of(Rlc.client_credentials_fail(handle, text, null));
    if (status == Status.E_NO_MEMORY) {
      throw RedlatchException.of(status, "credentials", "", "");
    }
  }

  /** Why they were refused; "" if they were not. */
  private String set(Credentials given) {
    try {
      long valid = msOf(given.valid());
      byte[] user = Text.bytes(given.user(), "user");
      byte[] password = Text.bytes(given.password(), "password");
      return Errors.check(
          "credentials",
          "",
          err ->
              Rlc.client_credentials_set(handle, user, password, valid, err) == Status.OK.number()
                  ? ""
                  : null);
    } catch (RedlatchException | NullPointerException | IllegalArgumentException refused) {
      return String.valueOf(refused.getMessage());
    }
  }

  private static long msOf(Duration valid) {
    if (Text.given(valid, "valid").compareTo(SHORTEST) < 0) { // -1 ms would be no end.
      throw new IllegalArgumentException(
          "valid must be " + SHORTEST + " or more, or NO_END (got " + valid + ")");
    }
    return valid.equals(Credentials.NO_END) ? NO_END_MS : Text.ms(valid);
  }

  /** Asks no more. The library fails connections then once the last credentials have ended. */
  synchronized void close() {
    if (!isClosed) {
      isClosed = true;
      Pump.forget(tag);
      Rlc.client_credentials_watch(handle, null, 0);
    }
  }
}

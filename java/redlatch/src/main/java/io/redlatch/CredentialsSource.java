// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_client;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/** Asks a {@link CredentialsProvider} when the library wants credentials. */
final class CredentialsSource {
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

  private void ask() {
    try {
      give(provider.credentials());
    } catch (Exception | Error reason) {
      fail(reason.toString());
    }
    watch();
  }

  private synchronized void give(Credentials given) {
    if (isClosed) {
      return;
    }
    Duration valid = given.valid();
    byte[] user = given.user().getBytes(StandardCharsets.UTF_8);
    byte[] password = given.password().getBytes(StandardCharsets.UTF_8);
    Errors.check(
        "credentials",
        "",
        err ->
            Rlc.client_credentials_set(
                        handle, user, password, valid.isZero() ? -1 : valid.toMillis(), err)
                    == Status.OK.number()
                ? true
                : null);
  }

  private synchronized void fail(String reason) {
    if (!isClosed) {
      Rlc.client_credentials_fail(handle, reason.getBytes(StandardCharsets.UTF_8), null);
    }
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

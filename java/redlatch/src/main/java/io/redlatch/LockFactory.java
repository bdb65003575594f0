// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_acquire_options;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_client;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_request;
import java.util.List;
import java.util.UUID;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Makes the locks of a client, and the leases that it attaches. */
final class LockFactory {
  /** Starts an acquisition of one name. */
  interface Start {
    @Nullable SWIGTYPE_p_rl_request start(
        SWIGTYPE_p_rl_client client,
        byte[] name,
        long waitMs,
        @Nullable SWIGTYPE_p_rl_acquire_options options);
  }

  private final Redlatch client;
  private final CallSession session;

  /** The prefix of owners that are threads, whose numbers are unique only in their process. */
  private final String process = UUID.randomUUID().toString();

  LockFactory(Redlatch client, CallSession session) {
    this.client = client;
    this.session = session;
  }

  /** The name is not copied. */
  NamedLock lock(byte[] name) {
    return lock(name, Rlc::acquire_start, null);
  }

  NamedLock lock(byte[] name, Start start, NamedLock.@Nullable Kind kind) {
    NamedLock.Starter starter =
        (waitMs, options) ->
            client.ask(handle -> start.start(handle, name, waitMs, options));
    return lock(List.of(Text.of(name)), starter, kind);
  }

  private NamedLock lock(
      List<String> names, NamedLock.Starter starter, NamedLock.@Nullable Kind kind) {
    return new NamedLock(client, session, starter, names, LockOptions.DEFAULT, kind);
  }

  NamedLock lockAll(LockNames all) {
    NamedLock.Starter starter =
        (waitMs, options) ->
            client.ask(
                handle ->
                    all.use(names -> Rlc.acquire_all_start(handle, names, waitMs, options)));
    return lock(all.texts(), starter, null);
  }

  /** Its owner is the thread that acquires it. */
  NamedLock reentrant(byte[] name) {
    return reentrant(
        name, () -> Text.bytes(process + ":" + Thread.currentThread().getId(), "owner"));
  }

  NamedLock reentrant(byte[] name, byte[] owner) {
    return reentrant(name, () -> owner);
  }

  private NamedLock reentrant(byte[] name, Supplier<byte[]> owner) {
    return lock(
        name,
        Rlc::acquire_start,
        options -> {
          Rlc.acquire_options_set_owner(options, owner.get());
          Rlc.acquire_options_set_reentrant(options, 1);
        });
  }

  Lease attach(
      byte[] name,
      String token,
      long fence,
      LockOptions options,
      NamedLock.@Nullable Kind kind) {
    String shown = Text.of(Text.given(name, "name"));
    byte[] proof = Text.bytes(token, "token");
    SWIGTYPE_p_rl_acquire_options made = Text.given(options, "options").make(kind);
    try (Request request =
        client.start(
            "attach",
            shown,
            handle -> Rlc.lease_attach_start(handle, name, proof, fence, made))) {
      request.awaitUninterruptibly();
      return new Lease(client, session, request.takeLease(), List.of(shown));
    } finally {
      Rlc.acquire_options_free(made);
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_client;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.function.Function;

/**
 * Acquires locks on most of several independent servers, so that the locks survive the failure of
 * the others. docs/redlock.md has the promises and limits. Any thread may use it.
 */
public final class Redlock implements AutoCloseable {
  private final CallSession session;

  private Redlock(SWIGTYPE_p_rl_client handle) {
    session = new CallSession(handle);
    CallSession.CLEANER.register(this, session);
  }

  /**
   * Makes a Redlock of the servers at `urls`, an odd number of them. It does not touch the network.
   *
   * @throws RedlatchException with {@link Status#E_INVALID} if a URL or an option is wrong, the
   *     number of URLs is even, or two are the same; the message names it and what is allowed.
   */
  public static Redlock open(Collection<String> urls, ClientOptions options) {
    for (String url : Text.given(urls, "urls")) {
      Text.given(url, "a URL of the list");
    }
    StringBuilder lines = new StringBuilder(); // An empty URL stays an empty line.
    urls.forEach(url -> lines.append(url).append('\n'));
    byte[] text = Text.bytes(lines.toString(), "urls");
    ClientOptions chosen = Text.given(options, "options");
    return new Redlock(chosen.open((made, err) -> Rlc.redlock_open(text, made, err)));
  }

  /** Makes a Redlock and connects it, with one attempt for each server. */
  public static Redlock connect(Collection<String> urls) {
    return connect(urls, ClientOptions.DEFAULT, Duration.ZERO);
  }

  /**
   * The same as connect(urls); it tries again until most of the servers may vote, or `wait` is
   * over.
   */
  public static Redlock connect(Collection<String> urls, ClientOptions options, Duration wait) {
    Redlock redlock = open(urls, options);
    try {
      redlock.connect(wait);
      return redlock;
    } catch (RuntimeException | Error failure) {
      redlock.close();
      throw failure;
    }
  }

  /**
   * Connects now, until most of the servers may vote, or `wait` is over; with zero it tries once.
   *
   * @throws RedlatchException as {@link Redlatch#connect(Duration)}.
   */
  public void connect(Duration wait) {
    long ms = Text.waitMs(wait);
    ask(
        redlock -> {
          redlock.connect(ms);
          return true;
        });
  }

  private <T> T ask(Function<CallSession, T> question) {
    try {
      return question.apply(session);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Returns the lock `name`, as UTF-8. Only the options ttl, renew, maxHold and label are used. The
   * fence of its leases is 0 without the option "fenced", and they cannot be attached. Sends
   * nothing.
   */
  public NamedLock lock(String name) {
    return lock(Text.bytes(name, "name"));
  }

  /** The same as lock(name), of any bytes. */
  public NamedLock lock(byte[] name) {
    byte[] copy = Text.copy(name, "name");
    NamedLock.Starter starter =
        (waitMs, options) ->
            ask(redlock -> Rlc.acquire_start(redlock.handle(), copy, waitMs, options));
    return new NamedLock(
        this, session, starter, List.of(Text.of(copy)), LockOptions.DEFAULT, null);
  }

  /** As {@link Redlatch#option}; "url" gives one line for each server. */
  public String option(String name) {
    byte[] bytes = Text.bytes(name, "name");
    return ask(redlock -> redlock.option(bytes));
  }

  /**
   * Checks each server now for what endangers locks there, such as eviction. The check acquires a
   * lock of its own, which leaves no key behind. It tries to connect until `wait` is over; with
   * zero it tries once. Each server gets one try. A server that refuses a question gives a finding
   * of {@link Finding.Level#UNKNOWN}.
   *
   * @throws RedlatchException as connect(wait).
   */
  public List<Finding> check(Duration wait) {
    long ms = Text.waitMs(wait);
    return ask(redlock -> redlock.check(ms));
  }

  /** Returns the last known state of each server, in the order of the URLs. Sends nothing. */
  public List<NodeInfo> info() {
    return ask(CallSession::info);
  }

  /** As {@link Redlatch#logTo}. */
  public LogBridge logTo(System.Logger logger) {
    return ask(redlock -> redlock.logTo(logger));
  }

  /** As {@link Redlatch#credentialsFrom}, for each server. */
  public void credentialsFrom(CredentialsProvider provider) {
    ask(
        redlock -> {
          redlock.credentialsFrom(provider);
          return true;
        });
  }

  /** As {@link Redlatch#close}. */
  @Override
  public void close() {
    try {
      session.close();
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  @Override
  public String toString() {
    return "Redlock[" + option("url").replace('\n', ' ') + "]";
  }
}

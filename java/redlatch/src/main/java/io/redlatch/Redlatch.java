// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_acquire_options;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_client;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_request;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Takes locks from one Redis or Valkey server. They are the same locks as those of redlatch's users
 * in C, C++, Python and Go. Any thread may use it, and one is enough for a process: it holds one
 * connection.
 *
 * <pre>{@code
 * try (Redlatch client = Redlatch.connect("redis://localhost:6379");
 *     Lease lease = client.lock("report").acquire(Duration.ofSeconds(5))) {
 *   write(lease.fence());
 * }
 * }</pre>
 */
public final class Redlatch implements AutoCloseable {
  private interface Start {
    @Nullable SWIGTYPE_p_rl_request start(
        SWIGTYPE_p_rl_client client,
        byte[] name,
        long waitMs,
        @Nullable SWIGTYPE_p_rl_acquire_options options);
  }

  /**
   * A lock that is handed on between the look and the release has another token. After as many it
   * is certainly a lock in use, and all its holders are removed.
   */
  private static final int FORCE_TRIES = 3;

  private final SWIGTYPE_p_rl_client handle;
  private final CallSession session;

  /** Of the owners that are threads, which have numbers in their process only. */
  private final String process = UUID.randomUUID().toString();

  private Redlatch(SWIGTYPE_p_rl_client handle) {
    this.handle = handle;
    session = new CallSession(handle);
    CallSession.CLEANER.register(this, session);
  }

  /**
   * Makes a client for the server at `url`: redis://, valkey://, unix:// or embedded://, as in
   * docs/url.md. It does not touch the network: connect does, or the first lock.
   *
   * @throws RedlatchException with {@link Status#E_INVALID} if the URL or an option is wrong; the
   *     message says which part, and what is allowed.
   */
  public static Redlatch open(String url, ClientOptions options) {
    byte[] text = Text.bytes(url, "url");
    ClientOptions chosen = Text.given(options, "options");
    return new Redlatch(chosen.open((made, err) -> Rlc.client_open(text, made, err)));
  }

  /** As open(url, options), with all the defaults. */
  public static Redlatch open(String url) {
    return open(url, ClientOptions.DEFAULT);
  }

  /**
   * Makes a client and connects it, with one attempt, so that a wrong address or password shows at
   * once. Throws what open() and connect(wait) do.
   */
  public static Redlatch connect(String url) {
    return connect(url, ClientOptions.DEFAULT, Duration.ZERO);
  }

  /** As connect(url), trying again until `wait` is over. */
  public static Redlatch connect(String url, ClientOptions options, Duration wait) {
    Redlatch client = open(url, options);
    try {
      client.connect(wait);
      return client;
    } catch (RuntimeException | Error failure) {
      client.close();
      throw failure;
    }
  }

  /**
   * Connects now, trying again until `wait` is over; with none, once.
   *
   * @throws RedlatchException with {@link Status#E_UNAVAILABLE} or {@link Status#E_DENIED}; or with
   *     {@link Status#CANCELLED} if the thread is interrupted, which it stays.
   */
  public void connect(Duration wait) {
    long ms = Text.waitMs(wait);
    ask(
        client -> {
          session.connect(ms);
          return true;
        });
  }

  private <T> T ask(Function<SWIGTYPE_p_rl_client, T> question) {
    try {
      return question.apply(handle);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  private Request start(
      String op,
      String name,
      Function<SWIGTYPE_p_rl_client, @Nullable SWIGTYPE_p_rl_request> start) {
    return ask(client -> Request.of(op, name, start.apply(client)));
  }

  private NamedLock lock(byte[] name, Start start, @Nullable Supplier<byte[]> owner) {
    NamedLock.Starter starter =
        (bytes, waitMs, options) ->
            ask(client -> start.start(client, bytes, waitMs, options));
    return new NamedLock(this, session, starter, name, LockOptions.DEFAULT, owner);
  }

  /** The lock `name`, as UTF-8. */
  public NamedLock lock(String name) {
    return lock(Text.bytes(name, "name"));
  }

  /** The lock `name`, of any bytes. */
  public NamedLock lock(byte[] name) {
    return lock(Text.copy(name, "name"), Rlc::acquire_start, null);
  }

  /** The read-write lock `name`, as UTF-8. */
  public NamedReadWriteLock readWriteLock(String name) {
    return readWriteLock(Text.bytes(name, "name"));
  }

  /** The read-write lock `name`, of any bytes. */
  public NamedReadWriteLock readWriteLock(byte[] name) {
    return new NamedReadWriteLock(
        lock(Text.copy(name, "name"), Rlc::rw_acquire_read_start, null),
        lock(Text.copy(name, "name"), Rlc::rw_acquire_write_start, null));
  }

  /**
   * The reentrant lock `name` of the thread that acquires it by this client: while it holds the
   * lock, it gets it again at once. Each acquisition is a lease of its own, and the lock is free
   * when the last has ended.
   */
  public NamedLock reentrantLock(String name) {
    return lock(
        Text.bytes(name, "name"),
        Rlc::acquire_start,
        () -> Text.bytes(process + ":" + Thread.currentThread().getId(), "owner"));
  }

  /**
   * The reentrant lock `name` of `owner`, of any bytes; {@link LockOptions#owner(byte[])} has the
   * range. All threads and processes that name the same owner are one owner.
   */
  public NamedLock reentrantLock(byte[] name, byte[] owner) {
    byte[] copy = Text.copy(owner, "owner");
    return lock(Text.copy(name, "name"), Rlc::acquire_start, () -> copy);
  }

  /** As reentrantLock(bytes, bytes), both as UTF-8. */
  public NamedLock reentrantLock(String name, String owner) {
    return reentrantLock(Text.bytes(name, "name"), Text.bytes(owner, "owner"));
  }

  /**
   * Takes over a lease that was detached, here or in another process: once for each detach(). Of
   * the options ttl, renew, maxHold and label count; those of the detached lease do not travel.
   *
   * @param fence that of the detached lease, which travels beside the token; 0 if it is not known.
   * @throws RedlatchException with {@link Status#E_NOT_HELD} if the token does not hold the lock,
   *     was not detached, or was attached before; with {@link Status#E_OUTCOME_UNKNOWN} if no
   *     answer came: the next attach says whether the lease is still detached; with {@link
   *     Status#E_INVALID} for an option that is not possible here.
   */
  public Lease attach(byte[] name, String token, long fence, LockOptions options) {
    String shown = Text.of(Text.given(name, "name"));
    byte[] proof = Text.bytes(token, "token");
    SWIGTYPE_p_rl_acquire_options made = Text.given(options, "options").make(null);
    try (Request request =
        start(
            "attach",
            shown,
            client -> Rlc.lease_attach_start(client, name, proof, fence, made))) {
      request.awaitUninterruptibly();
      return new Lease(this, session, request.takeLease());
    } finally {
      Rlc.acquire_options_free(made);
    }
  }

  /** As attach(bytes, token, fence, options), the name as UTF-8. */
  public Lease attach(String name, String token, long fence, LockOptions options) {
    return attach(Text.bytes(name, "name"), token, fence, options);
  }

  /** As attach(name, token, fence, options), with all the defaults. */
  public Lease attach(String name, String token, long fence) {
    return attach(name, token, fence, LockOptions.DEFAULT);
  }

  /** As attach(name, token, 0). */
  public Lease attach(byte[] name, String token) {
    return attach(name, token, 0, LockOptions.DEFAULT);
  }

  /** As attach(name, token, 0). */
  public Lease attach(String name, String token) {
    return attach(name, token, 0);
  }

  /** Looks at the lock `name`, and changes nothing. */
  public LockInfo inspect(String name) {
    return inspect(Text.bytes(name, "name"));
  }

  /** As inspect(name), of any bytes. */
  public LockInfo inspect(byte[] name) {
    String shown = Text.of(Text.given(name, "name"));
    try (Request request =
        start("inspect", shown, client -> Rlc.inspect_start(client, name))) {
      request.awaitUninterruptibly();
      return InfoReader.of(request.takeInfo());
    }
  }

  /**
   * The locks in the format STRING that redlatch clients hold, whose names fit `pattern`: * ? [a-z]
   * and \ before one of these; "" is all. A lock that is held all the time is found; one that comes
   * or goes meanwhile may be. Each step of an iterator, which is for one thread at a time, asks the
   * server.
   */
  public Iterable<LockInfo> list(String pattern) {
    byte[] text = Text.bytes(pattern, "pattern");
    return () -> ask(client -> new LockIterator(this, client, text));
  }

  /**
   * Removes all holders of the lock, and hands it to the next waiter. The fence rises; a holder
   * learns of it as a loss. For operators.
   *
   * @throws RedlatchException with {@link Status#E_NOT_HELD} if the lock is free; with {@link
   *     Status#E_WRONG_TYPE} if the key has another use, such as a counter or the lock of another
   *     library, which stays.
   */
  public void forceRelease(String name) {
    forceRelease(Text.bytes(name, "name"));
  }

  /** As forceRelease(text), the name as bytes. */
  public void forceRelease(byte[] name) {
    Text.given(name, "name");
    for (int tries = 0; tries < FORCE_TRIES; tries++) {
      Optional<byte[]> token = ForcedRelease.tokenOf(inspect(name));
      if (token.isEmpty()) {
        break;
      }
      try {
        forceRelease(name, token.get());
        return;
      } catch (RedlatchException failure) {
        if (failure.status() != Status.E_NOT_HELD) {
          throw failure;
        }
      }
    }
    forceReleaseAny(name);
  }

  /**
   * As forceRelease(name), also of other libraries. A string that is data, such as a counter,
   * counts as a holder and is deleted: look with {@link #inspect} before.
   *
   * @throws RedlatchException with {@link Status#E_NOT_HELD} if there is nothing to remove; with
   *     {@link Status#E_WRONG_TYPE} if the key has a type that no lock has.
   */
  public void forceReleaseAny(String name) {
    forceReleaseAny(Text.bytes(name, "name"));
  }

  /** As forceReleaseAny(text), the name as bytes. */
  public void forceReleaseAny(byte[] name) {
    Text.given(name, "name");
    force(name, client -> Rlc.force_release_any_start(client, name));
  }

  /**
   * As forceRelease(name), from the holder with this token or foreign value alone.
   *
   * @throws RedlatchException with {@link Status#E_INVALID} if the token is empty, {@link
   *     Status#E_NOT_HELD} if it does not hold the lock.
   */
  public void forceRelease(byte[] name, byte[] token) {
    Text.given(name, "name");
    Text.given(token, "token");
    force(name, client -> Rlc.force_release_start(client, name, token));
  }

  private void force(
      byte[] name, Function<SWIGTYPE_p_rl_client, @Nullable SWIGTYPE_p_rl_request> start) {
    try (Request request = start("force-release", Text.of(name), start)) {
      request.awaitUninterruptibly();
    }
  }

  /**
   * Writes what no call reports to `logger`: outages, lost locks (as errors), slower waiting. Each
   * client has its own log, and another logTo() of this client takes the place of the one before.
   * It is written to in a thread of redlatch's. {@code System.getLogger("io.redlatch")} is a
   * suitable logger; this package writes its own warnings there. Without logTo(), it also gets a
   * line for each thread, other than virtual threads, that has waited 10 s for a lock that it holds
   * itself.
   *
   * @return what ends it when it is closed; close() of the client does so after the last line.
   */
  public LogBridge logTo(System.Logger logger) {
    return ask(client -> session.logTo(logger));
  }

  /**
   * Has `provider` give user and password, in place of those of the URL. Held locks stay when they
   * change: docs/credentials.md. Use it between open() and connect(); another one takes the place
   * of the one before.
   */
  public void credentialsFrom(CredentialsProvider provider) {
    ask(
        client -> {
          session.credentialsFrom(provider);
          return true;
        });
  }

  /**
   * The value of an option, wherever it was set; or the "url", without secrets. "" for any other
   * name.
   */
  public String option(String name) {
    byte[] bytes = Text.bytes(name, "name");
    return ask(client -> session.option(bytes));
  }

  /**
   * Asks the server now for what endangers locks there, such as eviction, and tries a lock of a
   * name of its own, of which nothing stays. It tries to connect until `wait` is over; with none,
   * once. What is not said is {@link Finding.Level#UNKNOWN}.
   *
   * @throws RedlatchException as connect(wait) does.
   */
  public List<Finding> check(Duration wait) {
    long ms = Text.waitMs(wait);
    return ask(client -> session.check(ms));
  }

  /** The state of the server, as last known. No command is sent. */
  public List<NodeInfo> info() {
    return ask(client -> session.info());
  }

  /**
   * Ends the client's work. Held leases are released: the call waits for that at most {@code
   * command_timeout}, and then for the logger of {@link #logTo}, if there are lines left; no
   * interrupt ends it. Calls that wait end with {@link
   * Status#E_CLOSED}. A second close() does nothing.
   */
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
    return "Redlatch[" + option("url") + "]";
  }
}

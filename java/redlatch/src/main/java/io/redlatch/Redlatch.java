// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_client;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_request;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Acquires locks on one Redis or Valkey server, a Sentinel group or a Cluster. Users of redlatch in
 * C, C++, Python and Go have the same locks. Any thread may use it, and a process needs one.
 *
 * <pre>{@code
 * try (Redlatch client = Redlatch.connect("redis://localhost:6379");
 *     Lease lease = client.lock("report").acquire(Duration.ofSeconds(5))) {
 *   write(lease.fence());
 * }
 * }</pre>
 */
public final class Redlatch implements AutoCloseable {
  private final SWIGTYPE_p_rl_client handle;
  private final CallSession session;
  private final LockFactory locks;

  private Redlatch(SWIGTYPE_p_rl_client handle) {
    this.handle = handle;
    session = new CallSession(handle);
    locks = new LockFactory(this, session);
    CallSession.CLEANER.register(this, session);
  }

  /**
   * Makes a client for the server at `url`: redis://, valkey://, unix:// or embedded://, as in
   * docs/url.md. It does not touch the network: connect does, or the first lock.
   *
   * @throws RedlatchException with {@link Status#E_INVALID} if the URL or an option is wrong; the
   *     message names the part and what is allowed.
   */
  public static Redlatch open(String url, ClientOptions options) {
    byte[] text = Text.bytes(url, "url");
    ClientOptions chosen = Text.given(options, "options");
    return new Redlatch(chosen.open((made, err) -> Rlc.client_open(text, made, err)));
  }

  /** The same as open(url, options), with all the defaults. */
  public static Redlatch open(String url) {
    return open(url, ClientOptions.DEFAULT);
  }

  /**
   * Makes a client and connects it, with one attempt, so that a wrong address or password shows at
   * once. Throws the exceptions of open() and connect(wait).
   */
  public static Redlatch connect(String url) {
    return connect(url, ClientOptions.DEFAULT, Duration.ZERO);
  }

  /** The same as connect(url); it tries again until `wait` is over. */
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
   * Connects now. It tries again until `wait` is over; with zero it tries once.
   *
   * @throws RedlatchException with {@link Status#E_UNAVAILABLE} or {@link Status#E_DENIED}; with
   *     {@link Status#CANCELLED} if the thread is interrupted, and it stays interrupted.
   */
  public void connect(Duration wait) {
    long ms = Text.waitMs(wait);
    ask(
        client -> {
          session.connect(ms);
          return true;
        });
  }

  <T> T ask(Function<SWIGTYPE_p_rl_client, T> question) {
    try {
      return question.apply(handle);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  Request start(
      String op,
      String name,
      Function<SWIGTYPE_p_rl_client, @Nullable SWIGTYPE_p_rl_request> start) {
    return ask(client -> Request.of(op, name, start.apply(client)));
  }

  /** Returns the lock `name`, as UTF-8. Sends nothing. */
  public NamedLock lock(String name) {
    return lock(Text.bytes(name, "name"));
  }

  /** Returns the lock `name`, of any bytes. Sends nothing. */
  public NamedLock lock(byte[] name) {
    return locks.lock(Text.copy(name, "name"));
  }

  /** Returns the read-write lock `name`, as UTF-8. Sends nothing. */
  public NamedReadWriteLock readWriteLock(String name) {
    return readWriteLock(Text.bytes(name, "name"));
  }

  /** Returns the read-write lock `name`, of any bytes. Sends nothing. */
  public NamedReadWriteLock readWriteLock(byte[] name) {
    return new NamedReadWriteLock(
        locks.lock(Text.copy(name, "name"), Rlc::rw_acquire_read_start, null),
        locks.lock(Text.copy(name, "name"), Rlc::rw_acquire_write_start, null));
  }

  /**
   * Returns the reentrant lock `name`. Its owner is the thread that acquires it by this client:
   * while it holds the lock, it gets it again at once. Each acquisition is a lease of its own, and
   * the lock is free when the last one has ended. Sends nothing.
   */
  public NamedLock reentrantLock(String name) {
    return locks.reentrant(Text.bytes(name, "name"));
  }

  /**
   * Returns the reentrant lock `name` of `owner`, of any bytes; {@link LockOptions#owner(byte[])}
   * has the range. All threads and processes that name the same owner are one owner. Sends nothing.
   */
  public NamedLock reentrantLock(byte[] name, byte[] owner) {
    return locks.reentrant(Text.copy(name, "name"), Text.copy(owner, "owner"));
  }

  /** The same as reentrantLock(bytes, bytes), both as UTF-8. */
  public NamedLock reentrantLock(String name, String owner) {
    return reentrantLock(Text.bytes(name, "name"), Text.bytes(owner, "owner"));
  }

  /**
   * Returns the semaphore `name`, as UTF-8. At most `limit` of its permits are out at once, over
   * all processes. Sends nothing.
   *
   * @param limit 1 or more. It counts for the acquisitions of this object, and other callers may
   *     name another limit.
   * @throws RedlatchException with {@link Status#E_INVALID} if the limit is out of its range.
   */
  public NamedSemaphore semaphore(String name, int limit) {
    return semaphore(Text.bytes(name, "name"), limit);
  }

  /** The same as semaphore(text, limit), the name of any bytes. */
  public NamedSemaphore semaphore(byte[] name, int limit) {
    byte[] copy = Text.copy(name, "name");
    return new NamedSemaphore(this, locks.lock(copy), copy, limit, LockOptions.DEFAULT);
  }

  /**
   * Returns all of `names` as one lock: they are acquired together or not at all. Calls of this
   * method cannot deadlock with each other, whatever their order of names; a thread that acquires a
   * name while it holds another one still can. Sends nothing.
   *
   * <p>They have one lease, which is lost as soon as one of the names is; the reason says which.
   * Its name, token, mode and {@link Lease#fence} are those of the first name, and {@link
   * Lease#fences} has a fence for each. It cannot be detached, upgraded or downgraded.
   *
   * <p>While it waits for a name it may hold others: keep the list short. The options owner and
   * reentrant are refused when it is acquired. A {@link Redlock} has no such locks.
   *
   * @param names one name or more, which differ.
   * @throws RedlatchException with {@link Status#E_INVALID} if their number or a name is wrong.
   */
  public NamedLock lockAll(List<LockName> names) {
    return locks.lockAll(LockNames.of(names));
  }

  /** The same as lockAll(list). */
  public NamedLock lockAll(LockName... names) {
    return lockAll(Arrays.asList(Text.given(names, "names")));
  }

  /**
   * Returns the path, such as "a/b/c", as UTF-8, as one lock: a reader of "a" and of "a/b", and a
   * writer of "a/b/c". The page docs/paths.md says what a path is, and which other locks it
   * excludes. Otherwise as lockAll(list): the first name is the path itself.
   *
   * @param path 1 to 64 components with slashes between them, none of them empty.
   */
  public NamedLock lockPath(String path) {
    return lockPath(Text.bytes(path, "path"));
  }

  /** The same as lockPath(text), of any bytes. */
  public NamedLock lockPath(byte[] path) {
    return locks.lockAll(LockNames.ofPath(Text.copy(path, "path")));
  }

  /**
   * Runs the job `name` unless it has succeeded in this period, on any host. A success is
   * remembered for 90 % of `every`, from the start of the first run of the period, by the clock of
   * the server: schedulers may start some ms early. A run that fails, or whose process dies, leaves
   * the next caller a try, until the tries of the period are used up.
   *
   * <pre>{@code
   * client.once("report", Duration.ofHours(1), lease -> write(lease.fence()));
   * }</pre>
   *
   * <p>The job holds the lock `name` while it runs. A caller that finds it under way waits for its
   * end, unless the options say otherwise. If the server loses its memory of the job, by a
   * failover, a restart without data or an eviction, the job may run twice in a period.
   *
   * @param every the period, at most 366 days.
   * @return true if the job ran and succeeded; false if it was skipped.
   * @throws LockLostException if the lock was lost during the run, which counts as failed: others
   *     may have run the job at the same time. If the action throws too, its exception has this one
   *     as a suppressed one.
   * @throws NotAcquiredException if the wait of the options timed out.
   * @throws InterruptedException if the thread is interrupted while it waits; the job does not run.
   * @throws RedlatchException with {@link Status#E_INVALID} if `every` or an option is wrong.
   * @throws Exception the exception of the action.
   */
  public boolean once(String name, Duration every, OnceOptions options, OnceAction action)
      throws Exception {
    return once(Text.bytes(name, "name"), every, options, action);
  }

  /** The same as once(name, every, options, action), with all the defaults. */
  public boolean once(String name, Duration every, OnceAction action) throws Exception {
    return once(name, every, OnceOptions.DEFAULT, action);
  }

  /** The same as once(text, every, options, action), the name of any bytes. */
  public boolean once(byte[] name, Duration every, OnceOptions options, OnceAction action)
      throws Exception {
    long everyMs = Text.ms(every);
    Text.given(action, "action");
    try (Lease lease = Text.given(options, "options").acquire(lock(name))) {
      if (lease == null || !lease.beginRun(options.run(), everyMs)) {
        return false;
      }
      action.run(lease);
      lease.endRun(options.run());
      return true;
    }
  }

  /**
   * Forgets the runs of the job `name`, of all its periods: the next {@link #once} runs it. A run
   * that is under way continues, but counts only for callers that wait for it. For operators.
   */
  public void onceForget(String name) {
    onceForget(Text.bytes(name, "name"));
  }

  /** The same as onceForget(text), the name of any bytes. */
  public void onceForget(byte[] name) {
    Text.given(name, "name");
    finish("once-forget", name, client -> Rlc.once_forget_start(client, name));
  }

  /**
   * Returns the value `key`. If the server does not have it, one caller, on any host, computes it
   * by `work`; the others wait, and get its value. Calls within `ttl` get it, too, by the clock of
   * the server; the next one computes it again.
   *
   * <p>The caller that computes holds the lock `key` meanwhile. If its process dies, or the thread
   * is interrupted, the next caller that waits computes. The failure of `work` reaches the callers
   * that wait, and is not remembered.
   *
   * @param ttl for how long the value is kept.
   * @param work returns at most 64 KiB.
   * @throws SingleFlightException if the caller that computed the value has failed.
   * @throws LockLostException if the lock was lost meanwhile: others may have another value. If
   *     `work` throws too, its exception has this one as a suppressed one.
   * @throws NotAcquiredException if the wait of the options timed out.
   * @throws InterruptedException if the thread is interrupted while it waits.
   * @throws RedlatchException with {@link Status#E_INVALID} if the value, ttl or an option is
   *     wrong; with {@link Status#E_ALREADY_HELD} if this thread computes the value already.
   * @throws Exception the exception of the work.
   */
  public byte[] singleFlight(
      String key, Duration ttl, FlightOptions options, Callable<byte[]> work) throws Exception {
    return singleFlight(Text.bytes(key, "key"), ttl, options, work);
  }

  /** The same as singleFlight(key, ttl, options, work), with all the defaults. */
  public byte[] singleFlight(String key, Duration ttl, Callable<byte[]> work) throws Exception {
    return singleFlight(key, ttl, FlightOptions.DEFAULT, work);
  }

  /** The same as singleFlight(text, ttl, options, work), the key of any bytes. */
  public byte[] singleFlight(
      byte[] key, Duration ttl, FlightOptions options, Callable<byte[]> work) throws Exception {
    Text.given(work, "work");
    byte[] name = Text.copy(key, "key");
    NamedLock mutex =
        Text.given(options, "options").applyTo(locks.lock(name, Rlc::flight_start, null));
    return new Flight(this, name, ttl).run(mutex, options.waitMs(), work);
  }

  /** Returns the election `name`, as UTF-8, with the default id and options. Sends nothing. */
  public Election election(String name) {
    return election(Text.bytes(name, "name"));
  }

  /** Returns the election `name`, of any bytes. Otherwise as election(text). Sends nothing. */
  public Election election(byte[] name) {
    byte[] copy = Text.copy(name, "name");
    String id = Election.defaultId(System.getenv("POD_NAME"));
    return new Election(this, locks.lock(copy), copy, id, LockOptions.DEFAULT);
  }

  InfoReader.ElectionState electionState(byte[] name) {
    try (Request request =
        start("leader", Text.of(name), client -> Rlc.leader_start(client, name))) {
      request.awaitUninterruptibly();
      return InfoReader.electionOf(request.takeInfo());
    }
  }

  /** The numbers of a semaphore, for a caller with this limit. */
  SemaphoreStats stats(byte[] name, int limit) {
    try (Request request =
        start("stats", Text.of(name), client -> Rlc.semaphore_stats_start(client, name))) {
      request.awaitUninterruptibly();
      return InfoReader.statsOf(request.takeInfo(), limit);
    }
  }

  /**
   * Takes over a lease that was detached, here or in another process. Each detach() can be attached
   * once. The options ttl, renew, maxHold and label are used; those of the detached lease are not
   * kept.
   *
   * @param fence fence of the detached lease, which the caller stores beside the token; 0 if not
   *     known.
   * @throws RedlatchException with {@link Status#E_NOT_HELD} if the token does not hold the lock,
   *     was not detached, or was attached before. With {@link Status#E_OUTCOME_UNKNOWN} if no
   *     answer came: the lease may no longer be attachable, and the next attach shows it. With
   *     {@link Status#E_INVALID} if an option is not possible here.
   */
  public Lease attach(byte[] name, String token, long fence, LockOptions options) {
    return attach(name, token, fence, options, null);
  }

  Lease attach(
      byte[] name,
      String token,
      long fence,
      LockOptions options,
      NamedLock.@Nullable Kind kind) {
    return locks.attach(name, token, fence, options, kind);
  }

  /** The same as attach(bytes, token, fence, options), the name as UTF-8. */
  public Lease attach(String name, String token, long fence, LockOptions options) {
    return attach(Text.bytes(name, "name"), token, fence, options);
  }

  /** The same as attach(name, token, fence, options), with all the defaults. */
  public Lease attach(String name, String token, long fence) {
    return attach(name, token, fence, LockOptions.DEFAULT);
  }

  /** The same as attach(name, token, 0). */
  public Lease attach(byte[] name, String token) {
    return attach(name, token, 0, LockOptions.DEFAULT);
  }

  /** The same as attach(name, token, 0). */
  public Lease attach(String name, String token) {
    return attach(name, token, 0);
  }

  /** Returns a snapshot of the lock `name`, as the server has it. Changes nothing. */
  public LockInfo inspect(String name) {
    return inspect(Text.bytes(name, "name"));
  }

  /** The same as inspect(name), of any bytes. */
  public LockInfo inspect(byte[] name) {
    String shown = Text.of(Text.given(name, "name"));
    try (Request request =
        start("inspect", shown, client -> Rlc.inspect_start(client, name))) {
      request.awaitUninterruptibly();
      return InfoReader.of(request.takeInfo());
    }
  }

  /**
   * Iterates over the locks in the format STRING that redlatch clients hold, and whose names match
   * `pattern`: * ? [a-z] and \ before one of these; "" is all. A lock that is held all the time is
   * found; a lock that is acquired or released meanwhile may be. Each step asks the server. An
   * iterator is for one thread at a time.
   */
  public Iterable<LockInfo> list(String pattern) {
    byte[] text = Text.bytes(pattern, "pattern");
    return () -> ask(client -> new LockIterator(this, client, text));
  }

  /**
   * Removes all holders of the lock, and the next waiter gets it. For operators. The fence rises; a
   * holder finds out at its next renewal or release.
   *
   * @throws RedlatchException with {@link Status#E_NOT_HELD} if the lock is free. With {@link
   *     Status#E_WRONG_TYPE} if the key has another use, such as a counter or the lock of another
   *     library, which is kept.
   */
  public void forceRelease(String name) {
    forceRelease(Text.bytes(name, "name"));
  }

  /** The same as forceRelease(text), the name as bytes. */
  public void forceRelease(byte[] name) {
    Text.given(name, "name");
    ForcedRelease.run(this, name);
  }

  /**
   * The same as forceRelease(name), also for locks of other libraries. A string that is data, such
   * as a counter, counts as a holder and is deleted: use {@link #inspect} before.
   *
   * @throws RedlatchException with {@link Status#E_NOT_HELD} if there is nothing to remove; with
   *     {@link Status#E_WRONG_TYPE} if the key has a type that no lock has.
   */
  public void forceReleaseAny(String name) {
    forceReleaseAny(Text.bytes(name, "name"));
  }

  /** The same as forceReleaseAny(text), the name as bytes. */
  public void forceReleaseAny(byte[] name) {
    Text.given(name, "name");
    finish("force-release", name, client -> Rlc.force_release_any_start(client, name));
  }

  /**
   * Removes only the holder with this token or foreign value. Otherwise as forceRelease(name).
   *
   * @throws RedlatchException with {@link Status#E_INVALID} if the token is empty, {@link
   *     Status#E_NOT_HELD} if it does not hold the lock.
   */
  public void forceRelease(byte[] name, byte[] token) {
    Text.given(name, "name");
    Text.given(token, "token");
    finish("force-release", name, client -> Rlc.force_release_start(client, name, token));
  }

  /**
   * Asks the holders of the lock `name` to finish: its holder, all readers, or all holders of
   * permits. They hear it by {@link Lease#onRecall}, and decide: nothing is forced, and a recall
   * may be lost. A client sends at most one recall a second for a name: within a second the call
   * sends nothing, and returns the last number. Blocks for at most {@code connect_timeout} and
   * {@code command_timeout}; an interrupt does not end it.
   *
   * @param reason short text for people, may be empty; docs/options.md has the limit of its bytes.
   * @return the number of holders whose client has heard it; 0 is no error. A client of a version
   *     without recalls counts, and ignores them.
   * @throws RedlatchException with {@link Status#E_INVALID} if the name or the reason is wrong.
   *     With {@link Status#E_OUTCOME_UNKNOWN} if no answer came: it may have been sent.
   */
  public long recall(String name, String reason) {
    return recall(Text.bytes(name, "name"), reason);
  }

  /** The same as recall(text, reason), the name of any bytes. */
  public long recall(byte[] name, String reason) {
    return recall("recall", name, reason);
  }

  /**
   * Asks the leader of the election `name` to resign. A {@link LeaderElector} stops its work,
   * releases the lock when its callbacks have returned, and campaigns again after a delay. A {@link
   * Term} that the program runs itself hears it by {@link Term#onRecall}. Otherwise as
   * recall(name, reason).
   */
  public long resign(String name, String reason) {
    return resign(Text.bytes(name, "name"), reason);
  }

  /** The same as resign(text, reason), the name of any bytes. */
  public long resign(byte[] name, String reason) {
    return recall("resign", name, reason);
  }

  private long recall(String op, byte[] name, String reason) {
    String shown = Text.of(Text.given(name, "name"));
    byte[] text = Text.bytes(reason, "reason");
    try (Request request =
        start(op, shown, client -> Rlc.recall_start(client, name, text))) {
      request.awaitUninterruptibly();
      return request.recallHeard();
    }
  }

  private void finish(
      String op,
      byte[] name,
      Function<SWIGTYPE_p_rl_client, @Nullable SWIGTYPE_p_rl_request> start) {
    try (Request request = start(op, Text.of(name), start)) {
      request.awaitUninterruptibly();
    }
  }

  /**
   * Writes background events to `logger`: outages, lost locks (as errors), slower waiting. Each
   * client has its own log; another logTo() of this client replaces this one. The logger is called
   * in a thread of redlatch. {@code System.getLogger("io.redlatch")} is a suitable logger; this
   * package writes its own warnings there.
   *
   * <p>Without logTo(), the latter also gets a line for each thread that has waited 10 s for a
   * lock that it holds itself; virtual threads are left out.
   *
   * @return the bridge, whose close() ends this; close() of the client ends it after the last line.
   */
  public LogBridge logTo(System.Logger logger) {
    return ask(client -> session.logTo(logger));
  }

  /**
   * Makes `provider` give user and password, in place of those of the URL. Call it between open()
   * and connect(); another provider replaces this one. Held locks are kept when the credentials
   * change: docs/credentials.md.
   */
  public void credentialsFrom(CredentialsProvider provider) {
    ask(
        client -> {
          session.credentialsFrom(provider);
          return true;
        });
  }

  /**
   * Returns the value of an option, wherever it was set; "" for an unknown name. The name "url"
   * gives the URL without secrets. Sends nothing.
   */
  public String option(String name) {
    byte[] bytes = Text.bytes(name, "name");
    return ask(client -> session.option(bytes));
  }

  /**
   * Checks the server now for what endangers locks there, such as eviction. The check acquires a
   * lock of its own, which leaves no key behind. It tries to connect until `wait` is over; with
   * zero it tries once. A server that refuses a question gives a finding of {@link
   * Finding.Level#UNKNOWN}.
   *
   * @throws RedlatchException as connect(wait).
   */
  public List<Finding> check(Duration wait) {
    long ms = Text.waitMs(wait);
    return ask(client -> session.check(ms));
  }

  /** Returns the last known state of each server, in the order of the URLs. Sends nothing. */
  public List<NodeInfo> info() {
    return ask(client -> session.info());
  }

  /**
   * Releases all held leases, and ends waiting calls with {@link Status#E_CLOSED}. Blocks for at
   * most {@code command_timeout}, and then until the logger of {@link #logTo} has the last lines;
   * an interrupt does not end it. A second close() does nothing.
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

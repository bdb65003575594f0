// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.DeletedObjectListener;
import org.redisson.api.ExpiredObjectListener;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.ReadMode;

/**
 * A process with Redisson that does what it is told, one JSON object per line: see
 * tests/interop/peer.py. Beyond what is said there:
 *
 * <pre>
 *   open       watchdog_ms: what locks without a lease get; cluster: 1 if the URL is that of a node
 *   acquire    kind: rlock, spin, fenced, nonreentrant, fair, read, write; ttl_ms -1: none.
 *              Of a fenced lock the answer is its fence, or false
 *   state      -> is_locked, is_held (by this owner), hold_count (of this owner), remaining_ms
 *   downgrade  client, name: from the write lock to the read lock
 *   force      remove it, whoever holds it
 *   listen     add listeners for its deletion and its expiry
 *   events     -> what these have heard of this name
 * </pre>
 *
 * All but open, clock and crowd take a kind. Each owner is a thread, as Redisson wants it.
 */
public final class Peer {
  private static final TimeUnit MS = TimeUnit.MILLISECONDS;

  private final Map<String, RedissonClient> clients = new ConcurrentHashMap<>();
  private final Map<String, ExecutorService> owners = new ConcurrentHashMap<>();
  private final List<String> events = new CopyOnWriteArrayList<>();

  public static void main(String[] args) {
    Peer peer = new Peer();
    try (Scanner input = new Scanner(System.in, "UTF-8")) {
      while (input.hasNextLine()) {
        Request request = Request.parse(input.nextLine());
        peer.owners
            .computeIfAbsent(request.text("owner"), owner -> Executors.newSingleThreadExecutor())
            .execute(() -> peer.answer(request));
      }
    }
    System.exit(0);
  }

  private void answer(Request request) {
    long from = System.nanoTime();
    Object value = null;
    Throwable error = null;
    try {
      value = run(request);
    } catch (Exception e) {
      error = e;
    }
    String line = request.reply(from, System.nanoTime(), value, error);
    synchronized (System.out) {
      System.out.println(line);
      System.out.flush();
    }
  }

  private Object run(Request request) throws Exception {
    switch (request.text("do")) {
      case "clock":
        return System.nanoTime();
      case "open":
        open(request);
        return null;
      case "acquire":
        return take(lock(request), request);
      case "release":
        lock(request).unlock();
        return null;
      case "force":
        return lock(request).forceUnlock();
      case "state":
        return state(lock(request));
      case "listen":
        lock(request).addListener((DeletedObjectListener) name -> events.add("deleted " + name));
        lock(request).addListener((ExpiredObjectListener) name -> events.add("expired " + name));
        return null;
      case "events":
        return events.stream().filter(e -> e.endsWith(" " + request.text("name"))).toList();
      case "downgrade":
        clients.get(request.text("client")).getReadWriteLock(request.text("name")).readLock()
            .lock(request.number("ttl_ms"), MS);
        clients.get(request.text("client")).getReadWriteLock(request.text("name")).writeLock()
            .unlock();
        return null;
      case "crowd":
        return crowd(request);
      default:
        throw new IllegalArgumentException("no such command");
    }
  }

  private void open(Request request) {
    Config config = new Config().setThreads(4).setNettyThreads(4);
    if (request.has("watchdog_ms")) {
      config.setLockWatchdogTimeout(request.number("watchdog_ms"));
    }
    if (request.has("cluster")) {
      config
          .useClusterServers()
          .addNodeAddress(request.text("url"))
          .setReadMode(ReadMode.MASTER)
          .setMasterConnectionMinimumIdleSize(2);
    } else {
      config
          .useSingleServer()
          .setAddress(request.text("url"))
          .setConnectionMinimumIdleSize(2);
    }
    clients.put(request.text("client"), Redisson.create(config));
  }

  private RLock lock(Request request) {
    RedissonClient client = clients.get(request.text("client"));
    String name = request.text("name");
    switch (request.text("kind")) {
      case "rlock":
        return client.getLock(name);
      case "spin":
        return client.getSpinLock(name);
      case "fenced":
        return client.getFencedLock(name);
      case "nonreentrant":
        return client.getNonReentrantLock(name);
      case "fair":
        return client.getFairLock(name);
      case "read":
        return client.getReadWriteLock(name).readLock();
      case "write":
        return client.getReadWriteLock(name).writeLock();
      default:
        throw new IllegalArgumentException("no such kind of lock");
    }
  }

  /** True, or the fence, or false. Without a lease the watchdog keeps it. */
  private static Object take(RLock lock, Request request) throws InterruptedException {
    long waitMs = request.number("wait_ms");
    long leaseMs = request.number("ttl_ms");
    if (lock instanceof RFencedLock && waitMs >= 0) {
      Long fence = ((RFencedLock) lock).tryLockAndGetToken(waitMs, leaseMs, MS);
      return fence == null ? Boolean.FALSE : fence;
    }
    if (waitMs >= 0) {
      return lock.tryLock(waitMs, leaseMs, MS);
    }
    lock.lock(leaseMs, MS);
    return true;
  }

  private static Map<String, Object> state(RLock lock) {
    return Map.of(
        "is_locked", lock.isLocked(),
        "is_held", lock.isHeldByCurrentThread(),
        "hold_count", lock.getHoldCount(),
        "remaining_ms", lock.remainTimeToLive());
  }

  private List<Object> crowd(Request request) throws Exception {
    long end = System.nanoTime() + MS.toNanos(request.number("run_ms"));
    ExecutorService threads = Executors.newCachedThreadPool();
    List<Future<Integer>> running = new ArrayList<>();
    for (long i = 0; i < request.number("threads"); i++) {
      running.add(threads.submit(() -> member(lock(request), request, end)));
    }
    List<Object> counts = new ArrayList<>();
    for (Future<Integer> member : running) {
      counts.add(member.get());
    }
    threads.shutdown();
    return counts;
  }

  /**
   * Take, add one to the number in a file, slowly, and give back, until the time is over. Who reads
   * takes care that the number stays as it is.
   */
  private static int member(RLock lock, Request request, long end) throws Exception {
    Path counter = Path.of(request.text("counter"));
    int count = 0;
    while (System.nanoTime() < end) {
      if (Boolean.FALSE.equals(take(lock, request))) {
        continue;
      }
      // Later, the others may be gone.
      if (System.nanoTime() < end) {
        long number = Long.parseLong(Files.readString(counter));
        Thread.sleep(request.number("hold_ms"));
        if (!request.text("kind").equals("read")) {
          Files.writeString(counter, Long.toString(number + 1));
        } else if (Long.parseLong(Files.readString(counter)) != number) {
          throw new IllegalStateException("written beside a reader");
        }
        count++;
      }
      lock.unlock();
    }
    return count;
  }
}

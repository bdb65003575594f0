// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * What bench/readers.cc does as `mix`, with Redisson's RReadWriteLock: threads of one client that
 * read and sometimes write. The same arguments. The first second warms it up and does not count.
 */
public final class RedissonMix {
  public static void main(String[] args) throws Exception {
    Map<String, String> given = Rounds.given(args);
    int threads = Integer.parseInt(given.get("threads"));
    int writes = Integer.parseInt(given.get("writes"));
    long holdUs = Long.parseLong(given.get("hold_us"));
    double seconds = Double.parseDouble(given.get("seconds"));
    Config config = new Config();
    config.useSingleServer().setAddress("redis://127.0.0.1:" + given.get("port"));
    RedissonClient client = Redisson.create(config);
    RReadWriteLock lock = client.getReadWriteLock("readers-redisson");
    long from = System.nanoTime() + 1_000_000_000L;
    long end = from + (long) (seconds * 1e9);
    AtomicLong done = new AtomicLong();
    CountDownLatch ended = new CountDownLatch(threads);
    for (int t = 0; t < threads; t++) {
      int first = t * 37;
      new Thread(() -> {
        try {
          long mine = 0;
          for (int round = first; System.nanoTime() < end; round++) {
            RLock side = round * 61 % 100 >= writes ? lock.readLock() : lock.writeLock();
            side.lock();
            if (holdUs > 0) {
              Thread.sleep(holdUs / 1000, (int) (holdUs % 1000) * 1000);
            }
            side.unlock();
            mine += System.nanoTime() > from ? 1 : 0;
          }
          done.addAndGet(mine);
        } catch (InterruptedException e) {
          throw new IllegalStateException(e);
        } finally {
          ended.countDown();
        }
      }).start();
    }
    ended.await();
    System.out.println("{\"per_s\": " + done.get() / seconds + "}");
    System.exit(0);
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import java.util.List;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Redisson's, as it is by default. */
final class RedissonLocks implements Locks {
  private final RedissonClient client;

  RedissonLocks(int port) {
    Config config = new Config();
    config.useSingleServer().setAddress("redis://127.0.0.1:" + port);
    client = Redisson.create(config);
  }

  @Override
  public List<String> kinds() {
    return List.of("rlock", "fenced", "fair");
  }

  @Override
  public Lock make(String kind, String name) {
    RLock lock =
        switch (kind) {
          case "rlock" -> client.getLock(name);
          case "fenced" -> client.getFencedLock(name);
          case "fair" -> client.getFairLock(name);
          default -> throw new IllegalArgumentException(kind);
        };
    return new Lock() {
      @Override
      public void lock() {
        lock.lock();
      }

      @Override
      public void unlock() {
        lock.unlock();
      }
    };
  }
}

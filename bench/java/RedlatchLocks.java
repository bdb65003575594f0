// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import io.redlatch.Lease;
import io.redlatch.NamedLock;
import io.redlatch.NamedSemaphore;
import io.redlatch.Redlatch;
import java.util.List;

/** Ours. */
final class RedlatchLocks implements Locks {
  private final Redlatch client;

  RedlatchLocks(int port) {
    client = Redlatch.connect("redis://127.0.0.1:" + port);
  }

  @Override
  public List<String> kinds() {
    return List.of("lock", "call", "permit");
  }

  @Override
  public Lock make(String kind, String name) {
    if (kind.equals("permit")) {
      return new Permit(client.semaphore(name, 10));
    }
    NamedLock lock = client.lock(name);
    return kind.equals("call") ? new Guarded(lock) : new Leased(lock);
  }

  private static final class Leased implements Lock {
    private final NamedLock lock;
    private Lease held;

    Leased(NamedLock lock) {
      this.lock = lock;
    }

    @Override
    public void lock() throws InterruptedException {
      held = lock.acquire();
    }

    @Override
    public void unlock() {
      held.close();
    }
  }

  private static final class Permit implements Lock {
    private final NamedSemaphore semaphore;
    private Lease held;

    Permit(NamedSemaphore semaphore) {
      this.semaphore = semaphore;
    }

    @Override
    public void lock() throws InterruptedException {
      held = semaphore.acquire();
    }

    @Override
    public void unlock() {
      held.close();
    }
  }

  /** Does all of it in unlock: what it guards is nothing. */
  private record Guarded(NamedLock guard) implements Lock {
    @Override
    public void lock() {}

    @Override
    public void unlock() throws Exception {
      guard.call(() -> true);
    }
  }
}

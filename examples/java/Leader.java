// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import io.redlatch.Lease;
import io.redlatch.LockLostException;
import io.redlatch.LockOptions;
import io.redlatch.NamedLock;
import io.redlatch.Redlatch;
import io.redlatch.RedlatchException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;

/**
 * Several processes stand by, and one of them leads until it ends, or loses the lead: then it stops
 * its work and stands by again.
 *
 * <pre>java -cp redlatch.jar Leader.java redis://localhost:6379</pre>
 */
final class Leader {
  /** A process that is paused in a step goes on with it: the fence lets others refuse that. */
  private static void work(long fence) {
    System.out.println("works, fence " + fence);
  }

  private static void lead(Lease lease) throws InterruptedException {
    System.out.println("leads, fence " + lease.fence());
    CountDownLatch lost = new CountDownLatch(1);
    lease.onLost(lost::countDown);
    // A loss ends the wait of 0.1 s at once.
    while (!lost.await(100, MILLISECONDS)) {
      work(lease.fence());
    }
  }

  private static void standBy(NamedLock leader) throws InterruptedException {
    while (true) {
      try (Lease lease = leader.acquire()) {
        lead(lease);
      } catch (LockLostException lost) {
        System.out.println("stopped: " + lost.getMessage());
      }
    }
  }

  public static void main(String[] arguments) throws InterruptedException {
    if (arguments.length != 1) {
      System.err.println("usage: leader URL");
      System.exit(64);
    }
    try (Redlatch client = Redlatch.open(arguments[0])) {
      // The next one leads at the latest 3 s after this one has crashed. It stands by as long as it
      // takes, also while the server is away.
      standBy(client.lock("leader").with(LockOptions.DEFAULT.ttl(Duration.ofSeconds(3))));
    } catch (RedlatchException failure) {
      System.err.println("leader: " + failure.getMessage());
      System.exit(1);
    }
  }
}

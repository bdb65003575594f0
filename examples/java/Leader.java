// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import io.redlatch.Election;
import io.redlatch.LockLostException;
import io.redlatch.LockOptions;
import io.redlatch.Redlatch;
import io.redlatch.RedlatchException;
import io.redlatch.Term;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;

/**
 * Several processes stand by, and one of them leads until it ends, or loses the term: then it stops
 * its work and stands by again.
 *
 * <pre>java -cp redlatch.jar Leader.java redis://localhost:6379 [ID]</pre>
 */
final class Leader {
  /** A process that is paused in a step continues it: the fence lets others refuse that. */
  private static void work(long fence) {
    System.out.println("works, fence " + fence);
  }

  private static void lead(Term term) throws InterruptedException {
    System.out.println("leads, fence " + term.number());
    CountDownLatch lost = new CountDownLatch(1);
    term.onLost(lost::countDown);
    // A loss ends the wait of 0.1 s at once.
    while (!lost.await(100, MILLISECONDS)) {
      work(term.number());
    }
  }

  private static void standBy(Election election) throws InterruptedException {
    while (true) {
      try (Term term = election.campaign()) {
        lead(term);
      } catch (LockLostException lost) {
        System.out.println("stopped: " + lost.getMessage());
      }
    }
  }

  public static void main(String[] arguments) throws InterruptedException {
    if (arguments.length != 1 && arguments.length != 2) {
      System.err.println("usage: leader URL [ID]");
      System.exit(64);
    }
    try (Redlatch client = Redlatch.open(arguments[0])) {
      // The next one leads at the latest 3 s after this one has crashed. It stands by as long as it
      // takes, also while the server is away.
      Election election =
          client.election("leader").with(LockOptions.DEFAULT.ttl(Duration.ofSeconds(3)));
      standBy(arguments.length == 2 ? election.id(arguments[1]) : election);
    } catch (RedlatchException failure) {
      System.err.println("leader: " + failure.getMessage());
      System.exit(1);
    }
  }
}

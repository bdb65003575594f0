// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import io.redlatch.Lease;
import io.redlatch.Redlatch;
import io.redlatch.RedlatchException;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * A pool of three: of all processes that are started, on many hosts, three work at a time, and the
 * others wait for their turn. The work is a report, here the number of lines of the input.
 *
 * <pre>java -cp redlatch.jar Pool.java redis://localhost:6379 < access.log</pre>
 */
final class Pool {
  private static final int SIZE = 3;

  private static void report() {
    long lines = new BufferedReader(new InputStreamReader(System.in)).lines().count();
    System.out.println("done: " + lines + " lines");
  }

  private static void waitAndReport(Redlatch client) throws InterruptedException {
    // Throws LockLostException at its end if the lease was lost: more than three may have worked.
    try (Lease lease = client.semaphore("pool", SIZE).acquire()) {
      System.out.println("begun");
      report();
    }
  }

  public static void main(String[] arguments) throws InterruptedException {
    if (arguments.length != 1) {
      System.err.println("usage: pool URL < FILE");
      System.exit(64);
    }
    try (Redlatch client = Redlatch.open(arguments[0])) {
      waitAndReport(client);
    } catch (RedlatchException failure) {
      System.err.println("pool: " + failure.getMessage());
      System.exit(1);
    }
  }
}

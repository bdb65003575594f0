// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import io.redlatch.Lease;
import io.redlatch.Redlatch;
import io.redlatch.RedlatchException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Optional;

/**
 * A job that several hosts start at the same time, and that one of them does: a report, here the
 * number of lines of the input. Whoever finds the lock taken skips it.
 *
 * <pre>java -cp redlatch.jar Skip.java redis://localhost:6379 < access.log</pre>
 */
final class Skip {
  private static void report() {
    long lines = new BufferedReader(new InputStreamReader(System.in)).lines().count();
    System.out.println("done: " + lines + " lines");
  }

  private static void tryOrSkip(Redlatch client) {
    Optional<Lease> granted = client.lock("report").tryAcquire();
    if (granted.isEmpty()) {
      System.out.println("skipped: another host does it");
      return;
    }
    // Throws LockLostException at its end if the lock was lost: somebody else may have done it too.
    try (Lease lease = granted.get()) {
      System.out.println("begun");
      report();
    }
  }

  public static void main(String[] arguments) {
    if (arguments.length != 1) {
      System.err.println("usage: skip URL < FILE");
      System.exit(64);
    }
    try (Redlatch client = Redlatch.open(arguments[0])) {
      tryOrSkip(client);
    } catch (RedlatchException failure) {
      System.err.println("skip: " + failure.getMessage());
      System.exit(1);
    }
  }
}

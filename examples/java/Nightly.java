// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import io.redlatch.OnceOptions;
import io.redlatch.Redlatch;
import io.redlatch.RedlatchException;
import java.time.Duration;

/**
 * A report that every host starts each night, and that one of them makes: once for each day. If it
 * fails there, another host may try.
 *
 * <pre>java -cp redlatch.jar Nightly.java redis://localhost:6379 "$(date +%F)"</pre>
 */
final class Nightly {
  private static final Duration EVERY = Duration.ofDays(2);

  /** The work. An exception would leave the next host a try. */
  private static void report(String day) {
    System.out.println("done: the report of " + day);
  }

  private static void reportOnce(Redlatch client, String day) throws Exception {
    OnceOptions options = OnceOptions.DEFAULT.key(day).tries(3);
    // Throws LockLostException if the lock was lost: another host may have begun it, too.
    if (!client.once("nightly", EVERY, options, lease -> report(day))) {
      System.out.println("skipped: the report of " + day + " is done");
    }
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments.length != 2) {
      System.err.println("usage: nightly URL DAY");
      System.exit(64);
    }
    try (Redlatch client = Redlatch.open(arguments[0])) {
      reportOnce(client, arguments[1]);
    } catch (RedlatchException failure) {
      System.err.println("nightly: " + failure.getMessage());
      System.exit(1);
    }
  }
}

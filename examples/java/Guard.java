// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import io.redlatch.Lease;
import io.redlatch.NamedLock;
import io.redlatch.Redlatch;
import io.redlatch.RedlatchException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;

/**
 * Several processes add to the number in a file; a lock keeps them from losing additions.
 *
 * <pre>java -cp redlatch.jar Guard.java redis://localhost:6379 counter.txt 100</pre>
 */
final class Guard {
  private static void addOne(Path path) throws IOException {
    long count = Files.exists(path) ? Long.parseLong(Files.readString(path).strip()) : 0;
    Files.writeString(path, count + 1 + "\n");
  }

  public static void main(String[] arguments) throws InterruptedException {
    if (arguments.length < 2) {
      System.err.println("usage: guard URL FILE [TIMES]");
      System.exit(64);
    }
    int times = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 1;
    try (Redlatch client = Redlatch.open(arguments[0])) {
      NamedLock counter = client.lock("counter");
      for (; times > 0; times--) {
        // Throws LockLostException at its end if the lock was lost: somebody else may have been
        // inside too.
        try (Lease lease = counter.acquire(Duration.ofSeconds(30))) {
          addOne(Path.of(arguments[1]));
        }
      }
    } catch (RedlatchException | IOException failure) {
      System.err.println("guard: " + failure.getMessage());
      System.exit(1);
    }
  }
}

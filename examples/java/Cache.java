// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import io.redlatch.Lease;
import io.redlatch.NamedReadWriteLock;
import io.redlatch.Redlatch;
import io.redlatch.RedlatchException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;

/**
 * A cache that many processes read at the same time, and that one of them refreshes when it is too
 * old, while the others wait for the new value.
 *
 * <pre>java -cp redlatch.jar Cache.java redis://localhost:6379 cache.txt</pre>
 */
final class Cache {
  private static final Duration MAX_AGE = Duration.ofMinutes(1);

  private static boolean isFresh(Path path) throws IOException {
    Instant oldest = Instant.now().minus(MAX_AGE);
    return Files.exists(path) && Files.getLastModifiedTime(path).toInstant().isAfter(oldest);
  }

  /** Something slow, such as a query. */
  private static void refresh(Path path) throws IOException, InterruptedException {
    Thread.sleep(1000);
    Files.writeString(path, "value of process " + ProcessHandle.current().pid() + "\n");
    System.out.println("refreshed");
  }

  private static String readOrRefresh(NamedReadWriteLock cache, Path path)
      throws IOException, InterruptedException {
    try (Lease reading = cache.readLock().acquire()) {
      if (isFresh(path)) {
        return Files.readString(path);
      }
    }
    // Throws LockLostException at its end if the lock was lost: somebody else may have refreshed it
    // too.
    try (Lease writing = cache.writeLock().acquire()) {
      // Another may have refreshed it while this one waited.
      if (!isFresh(path)) {
        refresh(path);
      }
      return Files.readString(path);
    }
  }

  public static void main(String[] arguments) throws InterruptedException {
    if (arguments.length != 2) {
      System.err.println("usage: cache URL FILE");
      System.exit(64);
    }
    try (Redlatch client = Redlatch.open(arguments[0])) {
      System.out.print(readOrRefresh(client.readWriteLock("cache"), Path.of(arguments[1])));
    } catch (RedlatchException | IOException failure) {
      System.err.println("cache: " + failure.getMessage());
      System.exit(1);
    }
  }
}

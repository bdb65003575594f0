// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import static java.nio.charset.StandardCharsets.UTF_8;

import io.redlatch.FlightOptions;
import io.redlatch.Redlatch;
import io.redlatch.RedlatchException;
import java.time.Duration;

/**
 * A value that many processes want, and that takes long to compute: one of them computes it, the
 * others get its value, and so does every caller for a minute.
 *
 * <pre>java -cp redlatch.jar Cache.java redis://localhost:6379</pre>
 */
final class Cache {
  private static final Duration TTL = Duration.ofMinutes(1);
  private static final FlightOptions OPTIONS = FlightOptions.DEFAULT.wait(Duration.ofSeconds(30));

  /** Something slow, such as a query. An exception would reach the waiting callers, too. */
  private static byte[] compute() throws InterruptedException {
    System.out.println("computed");
    Thread.sleep(1000);
    return ("value of process " + ProcessHandle.current().pid()).getBytes(UTF_8);
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments.length != 1) {
      System.err.println("usage: cache URL");
      System.exit(64);
    }
    try (Redlatch client = Redlatch.open(arguments[0])) {
      byte[] value = client.singleFlight("cache", TTL, OPTIONS, Cache::compute);
      System.out.println(new String(value, UTF_8));
    } catch (RedlatchException failure) {
      System.err.println("cache: " + failure.getMessage());
      System.exit(1);
    }
  }
}

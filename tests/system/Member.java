// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import static java.nio.charset.StandardCharsets.UTF_8;

import io.redlatch.Lease;
import io.redlatch.LockOptions;
import io.redlatch.NamedLock;
import io.redlatch.Redlatch;
import io.redlatch.RedlatchException;
import java.time.Duration;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;

/**
 * What test_languages.py has in Java: for some ms it takes one of ten locks, holds it for a moment
 * and gives it back, over and over. How that went stands in its record.
 *
 * <pre>Member URL NAME MS SEED</pre>
 *
 * <p>REDLATCH_MEMBER_DEFECT=cut_at_nul plants a defect, as that of the conformance runner.
 */
final class Member {
  private static final int KEYS = 10;
  private static final int ONE_TRY_IN = 8;
  private static final int LONGEST_HOLD_NS = 5_000_000;
  private static final Duration WAIT = Duration.ofSeconds(20);
  private static final Duration TTL = Duration.ofSeconds(1);
  private static final boolean IS_CUT =
      "cut_at_nul".equals(System.getenv("REDLATCH_MEMBER_DEFECT"));

  private final Recorded record = new Recorded();
  private final Random random;
  private final Redlatch client;

  private Member(Redlatch client, long seed) {
    this.client = client;
    random = new Random(seed);
  }

  /** Null if a try found that somebody else has it. */
  private Lease take(String key, boolean isTry) throws InterruptedException {
    String name = IS_CUT ? key.substring(0, key.indexOf(0)) : key;
    NamedLock lock = client.lock(name).with(LockOptions.DEFAULT.ttl(TTL));
    Words words =
        new Words()
            .and("name", key.getBytes(UTF_8))
            .and("client", 0)
            .and("lease_ms", TTL.toMillis())
            .and("wait_ms", isTry ? 0 : WAIT.toMillis());
    return record.acquire(
        words, () -> isTry ? lock.tryAcquire().orElse(null) : lock.acquire(WAIT));
  }

  /** It is left to the record that somebody else has it, or that it was lost. */
  private void holdOnce(String name) throws InterruptedException {
    try {
      String key = name + "\0" + random.nextInt(KEYS);
      Lease lease = take(key, random.nextInt(ONE_TRY_IN) == 0);
      if (lease != null) {
        LockSupport.parkNanos(random.nextInt(LONGEST_HOLD_NS));
        record.release(lease, lease::release);
      }
    } catch (RedlatchException failure) {
      // See above.
    }
  }

  public static void main(String[] arguments) throws InterruptedException {
    long end = System.nanoTime() + Duration.ofMillis(Long.parseLong(arguments[2])).toNanos();
    Redlatch client = Redlatch.connect(arguments[0]);
    Member member = new Member(client, Long.parseLong(arguments[3]));
    while (System.nanoTime() < end) {
      member.holdOnce(arguments[1]);
    }
    member.record.close("0");
    client.close();
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Acquire and release in many threads of one process, each on a key of its own.
 *
 * <pre>
 *   port threads kinds  the server, threads of each kind, and kinds of RedlatchLocks, with commas
 * </pre>
 *
 * A round has three words: a number that no other has, ms of each kind, and into how many blocks
 * these are cut, taking turns. Its answer has the cycles per second of each kind.
 */
public final class Parallel {
  private Parallel() {}

  private static long cycles(Locks.Lock lock, long ns) throws Exception {
    long end = System.nanoTime() + ns;
    long count = 0;
    for (; System.nanoTime() < end; count++) {
      lock.lock();
      lock.unlock();
    }
    return count;
  }

  private static long all(ExecutorService threads, List<Locks.Lock> locks, long ns)
      throws Exception {
    List<Future<Long>> counts = new ArrayList<>();
    for (Locks.Lock lock : locks) {
      counts.add(threads.submit(() -> cycles(lock, ns)));
    }
    long sum = 0;
    for (Future<Long> count : counts) {
      sum += count.get();
    }
    return sum;
  }

  public static void main(String[] args) throws Exception {
    Map<String, String> given = Rounds.given(args);
    Locks library = new RedlatchLocks(Integer.parseInt(given.get("port")));
    String[] kinds = given.get("kinds").split(",");
    int count = Integer.parseInt(given.get("threads"));
    ExecutorService threads = Executors.newFixedThreadPool(count);
    Rounds.serve(
        words -> {
          long ns = Long.parseLong(words[1]) * 1_000_000;
          int blocks = Integer.parseInt(words[2]);
          List<List<Locks.Lock>> locks = new ArrayList<>();
          for (String kind : kinds) {
            List<Locks.Lock> own = new ArrayList<>();
            for (int i = 0; i < count; i++) {
              own.add(library.make(kind, "parallel-" + words[0] + "-" + kind + "-" + i));
            }
            locks.add(own);
          }
          double[] cycles = new double[kinds.length];
          for (int i = 0; i < blocks * kinds.length; i++) {
            int k = (i + i / kinds.length) % kinds.length;
            cycles[k] += all(threads, locks.get(k), ns / blocks);
          }
          List<String> members = new ArrayList<>();
          for (int k = 0; k < kinds.length; k++) {
            members.add("\"" + kinds[k] + "_per_s\": " + cycles[k] * 1e9 / ns);
          }
          return String.join(", ", members);
        });
  }
}

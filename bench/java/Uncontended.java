// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import com.sun.management.OperatingSystemMXBean;
import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.LongStream;

/**
 * Acquire and release from Java, by this package and by others.
 *
 * <pre>
 *   port libraries  the server, and the classes of Locks that are compared, with commas
 * </pre>
 *
 * A round has three words: a number that no other has, cycles of each kind of lock, and into how
 * many blocks these are cut, taking turns: a disturbance hits everybody alike. Its answer has, for
 * each kind, the p50 and p99 in us, the CPU time of this process, and what was allocated on Java's
 * heap by all threads for each cycle.
 */
public final class Uncontended {
  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
  private static final ThreadMXBean THREADS =
      (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private record Kind(Locks locks, String name) {}

  private static final class Candidate {
    private final String kind;
    private final Locks.Lock lock;
    private final long[] ns;
    private int count;
    private long cpuNs;
    private long bytes;

    Candidate(Kind kind, String number, int cycles) {
      this.kind = kind.name;
      lock = kind.locks.make(kind.name, "java-" + number + "-" + kind.name);
      ns = new long[cycles];
    }

    void run(int cycles) throws Exception {
      long[] threads = THREADS.getAllThreadIds();
      long bytesBefore = allocated(threads);
      long cpuBefore = SYSTEM.getProcessCpuTime();
      for (int i = 0; i < cycles; i++) {
        long start = System.nanoTime();
        lock.lock();
        lock.unlock();
        ns[count++] = System.nanoTime() - start;
      }
      cpuNs += SYSTEM.getProcessCpuTime() - cpuBefore;
      bytes += allocated(threads) - bytesBefore;
    }

    private static long allocated(long[] threads) {
      return LongStream.of(THREADS.getThreadAllocatedBytes(threads)).filter(n -> n > 0).sum();
    }

    String figures() {
      Arrays.sort(ns);
      return figure("p50_us", ns[ns.length / 2] / 1e3)
          + ", " + figure("p99_us", ns[ns.length * 99 / 100] / 1e3)
          + ", " + figure("cpu_us", cpuNs / 1e3 / ns.length)
          + ", " + figure("bytes", (double) bytes / ns.length);
    }

    private String figure(String name, double value) {
      return "\"" + kind + "_" + name + "\": " + value;
    }
  }

  private static String round(List<Kind> kinds, String[] words) throws Exception {
    int cycles = Integer.parseInt(words[1]);
    int blocks = Integer.parseInt(words[2]);
    List<Candidate> candidates = new ArrayList<>();
    for (Kind kind : kinds) {
      candidates.add(new Candidate(kind, words[0], cycles));
    }
    for (int i = 0; i < blocks; i++) {
      for (int k = 0; k < candidates.size(); k++) {
        candidates.get((i + k) % candidates.size()).run(cycles / blocks);
      }
    }
    return candidates.stream().map(Candidate::figures).collect(Collectors.joining(", "));
  }

  public static void main(String[] args) throws Exception {
    Map<String, String> given = Rounds.given(args);
    List<Kind> kinds = new ArrayList<>();
    for (String library : given.get("libraries").split(",")) {
      Locks locks = Locks.open(library, Integer.parseInt(given.get("port")));
      locks.kinds().forEach(name -> kinds.add(new Kind(locks, name)));
    }
    Rounds.serve(words -> round(kinds, words));
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * One of two processes that pass a lock to and fro: when did it ask, have it, and begin to give it
 * back.
 *
 * <pre>
 *   port          the server
 *   library kind  the class of Locks, and which of its locks
 * </pre>
 *
 * A round has four words: the name of a lock, for how many ms it is held, after how many more ms
 * it is asked for again, and how often. Its answer has three times of each turn in ns, of a clock
 * that all processes of the host share.
 */
public final class Wakeup {
  private static String round(Locks locks, String kind, String[] words) throws Exception {
    Locks.Lock lock = locks.make(kind, words[0] + "-" + kind);
    long holdMs = Long.parseLong(words[1]);
    long pauseMs = Long.parseLong(words[2]);
    List<String> turns = new ArrayList<>();
    for (int i = Integer.parseInt(words[3]); i > 0; i--) {
      long asked = System.nanoTime();
      lock.lock();
      long got = System.nanoTime();
      Thread.sleep(holdMs);
      long released = System.nanoTime();
      lock.unlock();
      turns.add(
          "{\"asked_ns\": " + asked + ", \"got_ns\": " + got + ", \"released_ns\": " + released
              + "}");
      Thread.sleep(pauseMs);
    }
    return "\"rows\": [" + String.join(", ", turns) + "]";
  }

  public static void main(String[] args) throws Exception {
    Map<String, String> given = Rounds.given(args);
    Locks locks = Locks.open(given.get("library"), Integer.parseInt(given.get("port")));
    Rounds.serve(words -> round(locks, given.get("kind"), words));
  }
}

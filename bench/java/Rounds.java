// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.Map;
import java.util.Scanner;

/**
 * What the programs share. A program does one round for each line of words that it is given, and
 * answers with one line, a JSON object: whoever asks can so see when it is warm.
 */
final class Rounds {
  private static final CompilationMXBean JIT = ManagementFactory.getCompilationMXBean();

  /** One round. */
  interface Round {
    /** The members of the JSON object. */
    String run(String[] words) throws Exception;
  }

  private Rounds() {}

  /** The arguments of the command line: name=value. */
  static Map<String, String> given(String[] args) {
    Map<String, String> given = new HashMap<>();
    for (String arg : args) {
      given.put(arg.substring(0, arg.indexOf('=')), arg.substring(arg.indexOf('=') + 1));
    }
    return given;
  }

  /** To each answer it adds which part of the time the compilers of Java were busy. */
  static void serve(Round round) throws Exception {
    try (Scanner input = new Scanner(System.in)) {
      while (input.hasNextLine()) {
        String[] words = input.nextLine().split(" ");
        long start = System.nanoTime();
        long jitMs = JIT.getTotalCompilationTime();
        String members = round.run(words);
        double share = (JIT.getTotalCompilationTime() - jitMs) * 1e6 / (System.nanoTime() - start);
        System.out.println("{" + members + ", \"jit_share\": " + share + "}");
      }
    }
    System.exit(0);
  }
}

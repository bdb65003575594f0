// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.Wait.Worker;
import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

class ThreadsTest extends ServerTest {
  private static final int CROWD = 1000;
  private static final Pattern VERSION = Pattern.compile("java.specification.version = (\\d+)");

  /** All that is left of fifty clients, which were closed and not collected yet, is the pump. */
  @Test
  void closedClientsLeaveNoThreadsOrDescriptors() throws Exception {
    Child child = Child.run(List.of(Child.java()), ManyClients.class, server.url());
    assertEquals("[redlatch-pump]\n", child.output);
    assertEquals(0, child.exitCode);
  }

  private static boolean areWaiting(List<? extends Worker<?>> crowd) {
    return crowd.stream().allMatch(one -> one.isParked());
  }

  @Test
  void allOfManyWaitingThreadsGetTheLock() throws Exception {
    Redlatch client = client();
    int[] counter = {0};
    List<Worker<Integer>> crowd = new ArrayList<>();
    try (Lease held = client.lock("x").acquire()) {
      for (int i = 0; i < CROWD; i++) {
        crowd.add(new Worker<>(() -> client.lock("x").call(() -> ++counter[0])));
      }
      Wait.until(() -> areWaiting(crowd));
      assertEquals(0, counter[0]);
      assertTrue(held.isHeld());
    }
    for (Worker<Integer> one : crowd) {
      one.end();
    }
    assertEquals(CROWD, counter[0]);
  }

  @Test
  void interruptsEndWaitsForASilentServer() throws Exception {
    Redlatch client = client();
    server.pause();
    List<Worker<Lease>> crowd = new ArrayList<>();
    for (int i = 0; i < CROWD; i++) {
      crowd.add(new Worker<>(() -> client.lock("x").acquire()));
    }
    Wait.until(() -> areWaiting(crowd));
    crowd.forEach(one -> one.thread.interrupt());
    for (Worker<Lease> one : crowd) {
      assertThrows(InterruptedException.class, one::end);
    }
    server.resume();
    client.lock("x").acquire().close();
  }

  /** One that has virtual threads: that which runs this, or is named, or is of this machine. */
  private static String findJavaWithVirtualThreads() throws Exception {
    List<String> all = new ArrayList<>(List.of(Child.java()));
    all.add(System.getenv().getOrDefault("REDLATCH_NEWER_JAVA", ""));
    File[] homes = new File("/usr/lib/jvm").listFiles();
    for (File home : homes == null ? new File[0] : homes) {
      all.add(home + "/bin/java");
    }
    all.removeIf(java -> !new File(java).canExecute());
    for (String java : all) {
      Child version = Child.run(List.of(java, "-XshowSettings:properties", "-version"));
      Matcher number = VERSION.matcher(version.output);
      if (number.find() && Integer.parseInt(number.group(1)) >= 21) {
        return java;
      }
    }
    return Assumptions.abort("needs Java 21 or later, by REDLATCH_NEWER_JAVA or in /usr/lib/jvm");
  }

  @Test
  void waitingVirtualThreadsDoNotPinTheirCarrier() throws Exception {
    List<String> java =
        List.of(
            findJavaWithVirtualThreads(),
            // One that is pinned keeps all others from running.
            "-Djdk.virtualThreadScheduler.parallelism=1",
            "-Djdk.virtualThreadScheduler.maxPoolSize=1",
            "--enable-native-access=ALL-UNNAMED");
    Child child = Child.run(java, VirtualThreads.class, server.url(), server.pid());
    assertEquals("had their turns: " + CROWD + "\ninterrupted: " + CROWD + "\n", child.output);
    assertEquals(0, child.exitCode);
  }
}

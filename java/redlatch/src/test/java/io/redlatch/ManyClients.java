// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** Uses many clients of the server that it is given, one after the other, and says what is left. */
final class ManyClients {
  private static final int CLIENTS = 50;

  private ManyClients() {}

  public static void main(String[] arguments) throws Exception {
    use(arguments[0]);
    long descriptors = descriptors();
    for (int i = 0; i < CLIENTS; i++) {
      use(arguments[0]);
    }
    Wait.until(() -> threads().count() == 1 && descriptors() <= descriptors);
    System.out.println(threads().sorted().toList());
  }

  private static void use(String url) throws Exception {
    try (Redlatch client = Redlatch.connect(url);
        Redlatch other = Redlatch.connect(url);
        Lease lease = client.lock("x").acquire()) {
      lease.onLost(() -> System.out.println("lost"));
      other.lock("x").acquireAsync();
      Wait.until(() -> client.inspect("x").waiting() == 1);
    }
  }

  /** Those of ours, by their names: others come and go as Java likes. */
  private static Stream<String> threads() {
    return list("/proc/self/task").stream()
        .map(task -> name(task.resolve("comm")))
        .filter(name -> name.startsWith("redlatch"));
  }

  private static String name(Path file) {
    try {
      return Files.readString(file).strip();
    } catch (IOException hasEnded) {
      return "";
    }
  }

  private static long descriptors() {
    return list("/proc/self/fd").size();
  }

  private static List<Path> list(String folder) {
    try (Stream<Path> all = Files.list(Path.of(folder))) {
      return all.toList();
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
  }
}

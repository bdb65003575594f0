// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.nio.file.Files;
import java.nio.file.Path;

/** Loads the library, twice, and says how that went. */
final class LoadLibrary {
  private LoadLibrary() {}

  public static void main(String[] arguments) throws Exception {
    for (int i = 0; i < 2; i++) {
      try {
        Redlatch.open("redis://localhost").close();
        System.out.println("loaded");
      } catch (UnsatisfiedLinkError failure) {
        System.out.println(failure.getMessage());
      }
    }
    for (String line : Files.readAllLines(Path.of("/proc/self/maps"))) {
      if (line.contains("r-xp") && line.contains("libredlatchjni")) {
        System.out.println(line.substring(line.indexOf('/')));
      }
    }
  }
}

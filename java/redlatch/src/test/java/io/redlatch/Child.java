// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A virtual machine of its own, in which Java looks at each call into the library. */
final class Child {
  final int exitCode;

  /** Both streams. What Java finds wrong with a call would be there. */
  final String output;

  private Child(int exitCode, String output) {
    this.exitCode = exitCode;
    this.output = output;
  }

  static String java() {
    return Path.of(System.getProperty("java.home"), "bin", "java").toString();
  }

  /** Runs the class of these tests with `options` of Java's. */
  static Child run(List<String> java, Class<?> main, String... arguments) throws Exception {
    return run(command(java, main, arguments));
  }

  /** A process that the test ends; its errors go to those of the test. */
  static Process start(Class<?> main, String... arguments) throws IOException {
    return new ProcessBuilder(command(List.of(java()), main, arguments))
        .redirectError(ProcessBuilder.Redirect.INHERIT)
        .start();
  }

  private static List<String> command(List<String> java, Class<?> main, String... arguments) {
    List<String> command = new ArrayList<>(java);
    String classes = String.join(File.pathSeparator, folderOf(Child.class), folderOf(Lease.class));
    command.addAll(List.of("-Xcheck:jni", "-ea", "-cp", classes, main.getName()));
    command.addAll(List.of(arguments));
    return command;
  }

  static Child run(List<String> command) throws IOException, InterruptedException {
    Path output = Files.createTempFile("redlatch", ".txt");
    try {
      ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
      Process process = builder.redirectOutput(output.toFile()).start();
      boolean hasEnded = process.waitFor(2 * Wait.PATIENCE_S, TimeUnit.SECONDS);
      process.destroyForcibly().waitFor();
      String text = Files.readString(output);
      assertTrue(hasEnded, () -> "it does not end:\n" + text);
      return new Child(process.exitValue(), text);
    } finally {
      Files.delete(output);
    }
  }

  static String folderOf(Class<?> one) {
    String url = one.getProtectionDomain().getCodeSource().getLocation().toString();
    return Path.of(URI.create(url)).toString();
  }
}

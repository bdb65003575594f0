// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch.internal;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** A machine, a system and a C library: each combination has its own library in the jar. */
record Platform(String system, String machine, String libc) {
  /** The names of those for which redlatch is released. */
  static final List<String> RELEASED =
      List.of("x86_64-linux-gnu", "aarch64-linux-gnu", "x86_64-linux-musl", "aarch64-linux-musl");

  private static final Path MAPPED_FILES = Path.of("/proc/self/maps");

  // musl is loader and library in one file. Distributions give it one of these names; that of glibc
  // is libc.so.6, or libc-2.31.so.
  private static final Pattern MUSL =
      Pattern.compile("/(ld-musl-[^/]+|libc\\.musl-[^/]+|libc\\.so)( \\(deleted\\))?$");

  static Platform current() {
    return new Platform(System.getProperty("os.name"), System.getProperty("os.arch"), findLibc());
  }

  /** Such as x86_64-linux-gnu. */
  String name() {
    String known =
        switch (machine) {
          case "amd64" -> "x86_64";
          case "arm64" -> "aarch64";
          default -> machine;
        };
    return known + "-" + system.toLowerCase(Locale.ROOT).replace(' ', '-') + "-" + libc;
  }

  /**
   * The C library of this process is one of its mapped files. Files on the disk would prove
   * nothing: a machine may have both C libraries.
   */
  private static String findLibc() {
    // One byte is one character, because the names of files may be in any encoding.
    try (Stream<String> lines = Files.lines(MAPPED_FILES, StandardCharsets.ISO_8859_1)) {
      return libcIn(lines);
    } catch (IOException | UncheckedIOException notReadable) {
      return "gnu"; // The most likely one. If it is wrong, the loader says so.
    }
  }

  /** The C library among the lines of /proc/self/maps. */
  static String libcIn(Stream<String> mappedFiles) {
    return mappedFiles.anyMatch(line -> MUSL.matcher(line).find()) ? "musl" : "gnu";
  }
}

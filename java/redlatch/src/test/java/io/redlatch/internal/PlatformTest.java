// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch.internal;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The library in the jar is chosen by the machine and the C library of the process. */
class PlatformTest {
  private static String libcOf(String file) {
    String mapped = "7f2c60a00000-7f2c60a28000 r--p 00000000 08:01 1316%18s%s";
    Stream<String> files = Stream.of("/usr/bin/java", "/lib/libcrypt.so.1", "[stack]", file);
    return Platform.libcIn(files.map(name -> mapped.formatted("", name)));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "/lib/ld-musl-x86_64.so.1",
        "/lib/ld-musl-aarch64.so.1 (deleted)",
        "/usr/lib/libc.musl-x86_64.so.1",
        "/usr/lib/x86_64-linux-musl/libc.so"
      })
  void muslIsRecognisedByItsLoader(String file) {
    assertEquals("musl", libcOf(file));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "/usr/lib/x86_64-linux-gnu/libc.so.6",
        "/lib/aarch64-linux-gnu/libc-2.31.so",
        "/lib64/ld-linux-x86-64.so.2",
        "/srv/ld-musl-data/libc.so.conf"
      })
  void anyOtherLibraryMeansGlibc(String file) {
    assertEquals("gnu", libcOf(file));
  }

  @ParameterizedTest
  @CsvSource({
    "Linux, amd64, gnu, x86_64-linux-gnu",
    "Linux, x86_64, musl, x86_64-linux-musl",
    "Linux, aarch64, gnu, aarch64-linux-gnu",
    "Linux, arm64, musl, aarch64-linux-musl",
    "Mac OS X, aarch64, gnu, aarch64-mac-os-x-gnu"
  })
  void nameMatchesTheFolderOfTheLibrary(String system, String machine, String libc, String name) {
    assertEquals(name, new Platform(system, machine, libc).name());
  }

  @Test
  void currentPlatformIsReleased() {
    assertEquals(1, Platform.RELEASED.stream().filter(Platform.current().name()::equals).count());
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The library comes out of the jar and leaves nothing behind, or it is said what to do. */
class NativeLibraryTest {
  @TempDir Path folder;

  private List<String> load(String... options) throws Exception {
    return load(List.of(), options);
  }

  /** What LoadLibrary says. */
  private List<String> load(List<String> wrapper, String... options) throws Exception {
    List<String> java = new ArrayList<>(wrapper);
    java.add(Child.java());
    java.addAll(List.of(options));
    Child child = Child.run(java, LoadLibrary.class);
    assertEquals(0, child.exitCode, child.output);
    return child.output.lines().toList();
  }

  private static String assertSaidTwice(List<String> lines) {
    assertEquals(List.of(lines.get(0), lines.get(0)), lines);
    return lines.get(0);
  }

  @Test
  void unpackedLibraryIsPrivateAndRemovedAtOnce() throws Exception {
    List<String> lines = load("-Djava.io.tmpdir=" + folder);
    assertEquals(List.of("loaded", "loaded"), lines.subList(0, 2));
    // A folder made by Files.createTempDirectory() is for its owner alone.
    String copy = folder + "/redlatch\\d+/libredlatchjni\\.so \\(deleted\\)";
    assertTrue(lines.get(2).matches(copy), lines::toString);
    assertEquals(3, lines.size(), lines::toString);
    try (Stream<Path> left = Files.list(folder)) {
      assertEquals(0, left.count());
    }
  }

  @Test
  void propertyNamesAnotherLibrary() throws Exception {
    Path library = folder.resolve("other/libredlatchjni.so");
    Files.createDirectory(library.getParent());
    try (Stream<Path> all = Files.walk(Path.of(Child.folderOf(Redlatch.class)))) {
      Stream<Path> found = all.filter(path -> path.endsWith(library.getFileName()));
      Files.copy(found.findFirst().orElseThrow(), library);
    }
    assertEquals(
        List.of("loaded", "loaded", library.toString()),
        load("-Dio.redlatch.library=" + library, "-Djava.io.tmpdir=/nowhere"));
  }

  @Test
  void errorNamesThePropertyWithAWrongPath() throws Exception {
    String said = assertSaidTwice(load("-Dio.redlatch.library=/nowhere/x.so"));
    String begin = "redlatch cannot load io.redlatch.library=/nowhere/x.so: ";
    assertTrue(said.startsWith(begin) && said.length() > begin.length(), said);
  }

  @Test
  void errorNamesAFolderThatIsNotWritable() throws Exception {
    // Not even root can.
    for (String tmpdir : List.of("/proc", "/nowhere")) {
      String said = assertSaidTwice(load("-Djava.io.tmpdir=" + tmpdir));
      assertTrue(said.startsWith("redlatch cannot unpack its library: "), said);
      assertTrue(said.contains("java.io.tmpdir=" + tmpdir + " must be a folder to write to"), said);
      assertTrue(said.contains("-Dio.redlatch.library=/path/to/libredlatchjni.so"), said);
    }
  }

  @Test
  void errorNamesAFolderMountedWithNoexec() throws Exception {
    String script = "mount -t tmpfs -o noexec none '" + folder + "' && exec \"$@\"";
    List<String> noexec = List.of("unshare", "-rm", "sh", "-c", script, "sh");
    assumeTrue(works(noexec), "needs unshare, to mount a folder without exec");
    String said = assertSaidTwice(load(noexec, "-Djava.io.tmpdir=" + folder));
    assertTrue(said.startsWith("redlatch cannot load a copy of its library"), said);
    assertTrue(said.contains("must be a folder to write to and to run programs from"), said);
  }

  private static boolean works(List<String> wrapper) throws InterruptedException {
    List<String> command = new ArrayList<>(wrapper);
    command.add("true");
    try {
      return Child.run(command).exitCode == 0;
    } catch (IOException notThere) {
      return false;
    }
  }

  @Test
  void errorNamesAMachineWithoutALibrary() throws Exception {
    String said = assertSaidTwice(load("-Dos.arch=riscv64"));
    String begin =
        "redlatch has no library for riscv64-linux-gnu (os.name=Linux, os.arch=riscv64, libc=gnu),"
            + " only for ";
    assertTrue(said.startsWith(begin), said);
    String released = said.substring(begin.length());
    assertTrue(released.matches("\\w+-linux-gnu(, [\\w-]+)*: build one there, and .*"), said);
    assertTrue(said.contains("-Dio.redlatch.library="), said);
  }
}

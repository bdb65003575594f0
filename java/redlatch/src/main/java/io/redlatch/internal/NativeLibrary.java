// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch.internal;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/**
 * Loads the library: the file that the property {@value #OVERRIDE} names, else the one in this jar,
 * which is copied to a private folder and removed again as soon as it is loaded.
 */
public final class NativeLibrary {
  /** The path of a libredlatchjni.so to be taken in place of the one in the jar. */
  public static final String OVERRIDE = "io.redlatch.library";

  private static final boolean IS_LOADED = find();

  private NativeLibrary() {}

  /** Loads it, if that was not done yet. */
  public static void load() {
    assert IS_LOADED;
  }

  private static boolean find() {
    String override = System.getProperty(OVERRIDE);
    if (override != null) {
      loadFile(Path.of(override).toAbsolutePath(), OVERRIDE + "=" + override);
      return true;
    }
    String system = System.getProperty("os.name").toLowerCase(Locale.ROOT).replace(' ', '-');
    String machine = System.getProperty("os.arch").replace("amd64", "x86_64");
    String resource = "/io/redlatch/natives/" + system + "-" + machine + "/libredlatchjni.so";
    try (InputStream content = NativeLibrary.class.getResourceAsStream(resource)) {
      if (content == null) {
        throw new UnsatisfiedLinkError(
            "redlatch has no library for this machine (" + resource + " is not in its jar); build"
                + " one there, and name it by -D" + OVERRIDE + "=/path/to/libredlatchjni.so");
      }
      loadCopy(content);
    } catch (IOException failure) {
      throw notUnpacked(failure);
    }
    return true;
  }

  /** Folders that Java makes for this are for their owner alone. */
  private static void loadCopy(InputStream content) throws IOException {
    Path folder = Files.createTempDirectory("redlatch");
    Path file = folder.resolve("libredlatchjni.so");
    try {
      Files.copy(content, file);
      loadFile(file, "a copy in java.io.tmpdir=" + System.getProperty("java.io.tmpdir"));
    } finally {
      Files.deleteIfExists(file);
      Files.deleteIfExists(folder);
    }
  }

  private static void loadFile(Path file, String what) {
    try {
      System.load(file.toString());
    } catch (UnsatisfiedLinkError failure) {
      UnsatisfiedLinkError clear =
          new UnsatisfiedLinkError("redlatch cannot load " + what + ": " + failure.getMessage());
      clear.initCause(failure);
      throw clear;
    }
  }

  private static UnsatisfiedLinkError notUnpacked(IOException failure) {
    UnsatisfiedLinkError clear =
        new UnsatisfiedLinkError(
            "redlatch cannot unpack its library into java.io.tmpdir="
                + System.getProperty("java.io.tmpdir")
                + ": name a folder that can be written and run from, or an unpacked library by -D"
                + OVERRIDE + ": " + failure);
    clear.initCause(failure);
    return clear;
  }
}

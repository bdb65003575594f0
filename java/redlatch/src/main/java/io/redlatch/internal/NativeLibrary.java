// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch.internal;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Loads the library: the file that the property {@value #OVERRIDE} names, else the one in this jar
 * for the present {@link Platform}, which is copied to a private folder and removed again as soon
 * as it is loaded.
 */
public final class NativeLibrary {
  /** The path of a libredlatchjni.so to be taken in place of the one in the jar. */
  public static final String OVERRIDE = "io.redlatch.library";

  private static final String INSTEAD =
      "name an unpacked library by -D" + OVERRIDE + "=/path/to/libredlatchjni.so";

  private static final @Nullable UnsatisfiedLinkError FAILURE = tryToLoad();

  private NativeLibrary() {}

  /** Loads the library, unless that was done before. Each caller gets the reason of a failure. */
  public static void load() {
    if (FAILURE != null) {
      throw because(FAILURE.getMessage(), FAILURE);
    }
  }

  private static @Nullable UnsatisfiedLinkError tryToLoad() {
    try {
      find();
      return null;
    } catch (UnsatisfiedLinkError failure) {
      return failure;
    }
  }

  private static void find() {
    String override = System.getProperty(OVERRIDE);
    if (override != null) {
      loadFile(Path.of(override).toAbsolutePath(), OVERRIDE + "=" + override);
      return;
    }
    Platform platform = Platform.current();
    try (InputStream content = NativeLibrary.class.getResourceAsStream(resource(platform.name()))) {
      if (content == null) {
        throw new UnsatisfiedLinkError(
            "redlatch has no library for " + platform.name() + " (os.name=" + platform.system()
                + ", os.arch=" + platform.machine() + ", libc=" + platform.libc() + "), only for "
                + released() + ": build one there, and " + INSTEAD);
      }
      loadCopy(content);
    } catch (IOException failure) {
      throw because("redlatch cannot unpack its library: " + failure + whereToUnpack(), failure);
    }
  }

  private static String resource(String platform) {
    return "/io/redlatch/natives/" + platform + "/libredlatchjni.so";
  }

  /** The platforms whose library is in this jar. */
  private static String released() {
    Stream<String> present =
        Platform.RELEASED.stream()
            .filter(name -> NativeLibrary.class.getResource(resource(name)) != null);
    return present.collect(Collectors.joining(", "));
  }

  private static void loadCopy(InputStream content) throws IOException {
    // For its owner alone: what is loaded from there is what was put there.
    Path folder = Files.createTempDirectory("redlatch");
    Path file = folder.resolve("libredlatchjni.so");
    try {
      Files.copy(content, file);
      loadFile(file, "a copy of its library" + whereToUnpack());
    } finally {
      Files.deleteIfExists(file);
      Files.deleteIfExists(folder);
    }
  }

  private static String whereToUnpack() {
    return " (java.io.tmpdir=" + System.getProperty("java.io.tmpdir") + " must be a folder to"
        + " write to and to run programs from; or " + INSTEAD + ")";
  }

  private static void loadFile(Path file, String what) {
    try {
      System.load(file.toString());
    } catch (UnsatisfiedLinkError failure) {
      throw because("redlatch cannot load " + what + ": " + failure.getMessage(), failure);
    }
  }

  private static UnsatisfiedLinkError because(String message, Throwable cause) {
    UnsatisfiedLinkError failure = new UnsatisfiedLinkError(message);
    failure.initCause(cause);
    return failure;
  }
}

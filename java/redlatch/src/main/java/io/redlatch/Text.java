// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.time.Duration;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/** Text and times, as they cross into the library. */
final class Text {
  private Text() {}

  static byte[] bytes(String text) {
    return text.getBytes(UTF_8);
  }

  static String of(byte @Nullable [] text) {
    return text == null ? "" : new String(text, UTF_8);
  }

  /** Asks for a text of unknown length. The library puts a NUL behind it. */
  static byte[] read(ToLongFunction<byte[]> write) {
    byte[] buffer = new byte[128];
    while (true) {
      int length = (int) write.applyAsLong(buffer);
      if (length < buffer.length) {
        return java.util.Arrays.copyOf(buffer, length);
      }
      buffer = new byte[length + 1];
    }
  }

  /** Whole milliseconds: more than none is at least one, and what is too long is the longest. */
  static long ms(Duration duration) {
    try {
      long ms = duration.toMillis();
      return ms == 0 && duration.compareTo(Duration.ZERO) > 0 ? 1 : ms;
    } catch (ArithmeticException tooLong) {
      return duration.isNegative() ? Long.MIN_VALUE : Long.MAX_VALUE;
    }
  }
}

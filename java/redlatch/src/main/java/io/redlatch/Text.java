// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.time.Duration;
import java.util.Arrays;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/** Text and times, as they cross into the library. */
final class Text {
  private Text() {}

  /** Half a character would become a question mark, and a name another one. */
  static byte[] bytes(String text) {
    try {
      ByteBuffer bytes = UTF_8.newEncoder().encode(CharBuffer.wrap(text));
      return Arrays.copyOf(bytes.array(), bytes.limit());
    } catch (CharacterCodingException failure) {
      throw RedlatchException.of(
          Status.E_INVALID, "encode", "", quoted(text) + " has half of a surrogate pair");
    }
  }

  static String of(byte @Nullable [] text) {
    return text == null ? "" : new String(text, UTF_8);
  }

  /** A name as the library shows it, in one line. */
  static String quoted(String name) {
    StringBuilder text = new StringBuilder("'");
    for (char one : name.toCharArray()) {
      text.append(Character.isISOControl(one) ? String.format("\\x%02x", (int) one) : one);
    }
    return text.append("'").toString();
  }

  /** Asks for a text of unknown length. The library puts a NUL behind it. */
  static byte[] read(ToLongFunction<byte[]> write) {
    byte[] buffer = new byte[128];
    while (true) {
      int length = (int) write.applyAsLong(buffer);
      if (length < buffer.length) {
        return Arrays.copyOf(buffer, length);
      }
      buffer = new byte[length + 1];
    }
  }

  /** As ms(), of a wait: for the library, less than none would be as long as it takes. */
  static long waitMs(Duration wait) {
    return Math.max(0, ms(wait));
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

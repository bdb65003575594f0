// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.time.Duration;
import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/** Text and times, as they cross into the library. */
final class Text {
  private static final int MOST_SHOWN = 64;

  private Text() {}

  /** Refuses null with a message that names the parameter. */
  static <T> T given(@Nullable T value, String what) {
    return Objects.requireNonNull(value, () -> what + " must not be null");
  }

  /**
   * `what` is its name in messages; the text itself may be a password. Half a character would
   * become a question mark, and a name another one.
   */
  static byte[] bytes(String text, String what) {
    try {
      ByteBuffer bytes = UTF_8.newEncoder().encode(CharBuffer.wrap(given(text, what)));
      return Arrays.copyOf(bytes.array(), bytes.limit());
    } catch (CharacterCodingException failure) {
      throw RedlatchException.of(
          Status.E_INVALID,
          "encode",
          "",
          what + " must be Unicode text (got half of a surrogate pair)");
    }
  }

  /** The bytes of a caller, which may change them later. */
  static byte[] copy(byte[] bytes, String what) {
    return given(bytes, what).clone();
  }

  static String of(byte @Nullable [] text) {
    return text == null ? "" : new String(text, UTF_8);
  }

  /** A name as the library shows it, in one line, and shortened if it is long. */
  static String quoted(String name) {
    boolean isLong = name.length() > MOST_SHOWN;
    StringBuilder text = new StringBuilder("'");
    for (char one : name.substring(0, isLong ? MOST_SHOWN : name.length()).toCharArray()) {
      text.append(Character.isISOControl(one) ? String.format("\\x%02x", (int) one) : one);
    }
    return text.append(isLong ? "'.." : "'").toString();
  }

  /** The value of an option in one line; in quotes if it is not a word. */
  static String shown(String value) {
    return value.matches("[\\w.:-]+") ? value : quoted(value);
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

  /**
   * As ms(), of a wait. Less than none is mostly a mistake, and for the library it would be as long
   * as it takes.
   */
  static long waitMs(Duration wait) {
    if (given(wait, "duration").isNegative()) {
      throw RedlatchException.of(
          Status.E_INVALID, "wait", "", "wait must be 0 or more (got " + text(wait) + ")");
    }
    return ms(wait);
  }

  /** As java.util.concurrent gives it: none below 0, and 292 years for all that is longer. */
  static Duration wait(long time, TimeUnit unit) {
    return Duration.ofNanos(Math.max(0, given(unit, "unit").toNanos(time)));
  }

  /** In milliseconds, rounded as ms() does; what is below one as it is, and so for no option. */
  static String text(Duration duration) {
    long ms = ms(given(duration, "duration"));
    boolean isPart = Math.abs(ms) == 1 && duration.toNanos() % 1_000_000 != 0;
    return isPart ? duration.toNanos() + "ns" : ms + "ms";
  }

  /** Rounded away from zero, which often has a meaning of its own; too long is the longest. */
  static long ms(Duration duration) {
    try {
      long ms = given(duration, "duration").toMillis();
      return Math.addExact(ms, Integer.signum(duration.compareTo(Duration.ofMillis(ms))));
    } catch (ArithmeticException tooLong) {
      return duration.isNegative() ? Long.MIN_VALUE : Long.MAX_VALUE;
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import org.junit.jupiter.api.Test;

class TextTest {
  @Test
  void durationsAreRoundedAwayFromZeroToMilliseconds() {
    assertEquals(1, Text.ms(Duration.ofNanos(1)));
    assertEquals(2, Text.ms(Duration.ofNanos(1_999_999)));
    assertEquals(-1, Text.ms(Duration.ofNanos(-1)));
    assertEquals(-2, Text.ms(Duration.ofNanos(-1_000_001)));
    assertEquals(-2, Text.ms(Duration.ofMillis(-2)));
    assertEquals(0, Text.ms(Duration.ZERO));
    assertEquals(-1000, Text.ms(Duration.ofSeconds(-1)));
    assertEquals(Long.MAX_VALUE, Text.ms(Duration.ofSeconds(Long.MAX_VALUE)));
    assertEquals(Long.MIN_VALUE, Text.ms(Duration.ofSeconds(Long.MIN_VALUE)));
    assertEquals("-1ms", Text.text(Duration.ofMillis(-1)));
    assertEquals("-1ns", Text.text(Duration.ofNanos(-1)));
    assertEquals("2ms", Text.text(Duration.ofNanos(1_000_001)));
  }

  @Test
  void textLongerThanTheBufferIsReadWhole() {
    for (int length : new int[] {0, 1, 127, 128, 129, 4000}) {
      byte[] all = "x".repeat(length).getBytes();
      byte[] read =
          Text.read(
              buffer -> {
                // As the library does it: with a NUL behind what there is room for.
                int taken = Math.min(length, buffer.length - 1);
                System.arraycopy(all, 0, buffer, 0, taken);
                return length;
              });
      assertArrayEquals(all, read);
    }
  }

  @Test
  void quotedNamesAreEscapedAndCut() {
    assertEquals("'a\\x00\\x0ab é'", Text.quoted("a\0\nb é"));
    assertEquals("'" + "x".repeat(64) + "'", Text.quoted("x".repeat(64)));
    assertEquals("'" + "x".repeat(64) + "'..", Text.quoted("x".repeat(65)));
  }
}

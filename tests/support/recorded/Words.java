// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** The keys and the values of a record. */
final class Words {
  private final Map<String, String> encoded = new TreeMap<>();

  /** Bytes, or what has a text. What is there already is replaced. */
  Words and(String key, Object value) {
    boolean isText = !(value instanceof byte[]);
    encoded.put(key, encode(isText ? value.toString().getBytes(UTF_8) : (byte[]) value));
    return this;
  }

  /** As and(), with all of `more`. */
  Words and(Words more) {
    encoded.putAll(more.encoded);
    return this;
  }

  private static String encode(byte[] value) {
    StringBuilder text = new StringBuilder();
    for (byte one : value) {
      if (one > 0 && (Character.isLetterOrDigit(one) || "-_.~".indexOf(one) >= 0)) {
        text.append((char) one);
      } else {
        text.append('%').append(HexFormat.of().toHexDigits(one));
      }
    }
    return text.toString();
  }

  @Override
  public String toString() {
    return encoded.entrySet().stream()
        .map(word -> word.getKey() + "=" + word.getValue())
        .collect(Collectors.joining(" "));
  }
}

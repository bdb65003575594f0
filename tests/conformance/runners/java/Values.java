// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import io.redlatch.LockName;
import java.io.ByteArrayOutputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The arguments of a line, any bytes. */
final class Values {
  private final Map<String, byte[]> all = new LinkedHashMap<>();

  void put(String key, String encoded) {
    all.put(key, decode(encoded));
  }

  Set<String> keys() {
    return all.keySet();
  }

  boolean has(String key) {
    return all.containsKey(key);
  }

  /** None for what is not there. */
  byte[] bytes(String key) {
    return all.getOrDefault(key, new byte[0]);
  }

  String text(String key) {
    return new String(bytes(key), UTF_8);
  }

  /** 0 for what is not there. */
  long number(String key) {
    return has(key) ? Long.parseLong(text(key)) : 0;
  }

  /** The nearest there is. */
  int small(String key) {
    return (int) Math.max(Integer.MIN_VALUE, Math.min(Integer.MAX_VALUE, number(key)));
  }

  boolean isSemaphore() {
    return text("kind").equals("semaphore");
  }

  boolean isAll() {
    return text("kind").equals("all");
  }

  /** Those of several: "a,b:read". */
  List<LockName> names() {
    List<LockName> names = new ArrayList<>();
    for (String name : text("names").split(",")) {
      if (name.endsWith(":read")) {
        names.add(LockName.read(name.substring(0, name.length() - ":read".length())));
      } else if (!name.isEmpty()) {
        names.add(LockName.write(name));
      }
    }
    return names;
  }

  /** Those of a semaphore. */
  int permits() {
    return has("permits") ? small("permits") : 1;
  }

  Duration duration(String key) {
    return Duration.ofMillis(number(key));
  }

  boolean isTry() {
    return number("wait_ms") == 0;
  }

  boolean isEndless() {
    return number("wait_ms") == -1;
  }

  /** Java has no words for a wait that is shorter than none. */
  boolean isNoWait() {
    return number("wait_ms") < -1;
  }

  static byte[] decode(String text) {
    ByteArrayOutputStream decoded = new ByteArrayOutputStream();
    for (int i = 0; i < text.length(); i++) {
      if (text.charAt(i) == '%') {
        decoded.write(Integer.parseInt(text.substring(i + 1, i + 3), 16));
        i += 2;
      } else {
        decoded.write(text.charAt(i));
      }
    }
    return decoded.toByteArray();
  }

  static String encode(byte[] value) {
    StringBuilder text = new StringBuilder();
    for (char one : new String(value, ISO_8859_1).toCharArray()) {
      if (one > ' ' && one < 0x7f && one != '%') {
        text.append(one);
      } else {
        text.append(one < 16 ? "%0" : "%").append(Integer.toHexString(one));
      }
    }
    return text.toString();
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.NativeLibrary;
import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_acquire_options;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** The options of an acquisition by name. The library checks the values when they are used. */
abstract class OptionValues<Self> {
  private record Value(byte[] name, byte[] text) {}

  private final List<Value> values;

  OptionValues() {
    values = List.of();
  }

  OptionValues(OptionValues<Self> before, String name, byte[] value) {
    if (!OptionNames.ACQUIRE.contains(name)) {
      refuseUnknown(name);
    }
    List<Value> all = new ArrayList<>(before.values);
    all.add(new Value(Text.bytes(name, "name"), value));
    values = List.copyOf(all);
  }

  /** Refuses a name with the message of the library, such as the nearest valid name. */
  private static void refuseUnknown(String name) {
    check("acquire", Text.bytes(name, "name"), new byte[0]);
  }

  /** Refuses a wrong name or value with the message of the library. */
  static void check(String op, byte[] name, byte[] text) {
    NativeLibrary.load();
    SWIGTYPE_p_rl_acquire_options scratch = Rlc.acquire_options_new();
    try {
      Errors.check(
          op, "", err -> Rlc.acquire_options_set(scratch, name, text, err) == 0 ? true : null);
    } finally {
      Rlc.acquire_options_free(scratch);
    }
  }

  /** Refuses a wrong value now, and not when it is used. */
  void check(String op) {
    values.forEach(value -> check(op, value.name, value.text));
  }

  /** The same options with another one. */
  abstract Self and(String name, byte[] value);

  /**
   * Sets an option by its name, as in docs/options.md.
   *
   * @throws RedlatchException with {@link Status#E_INVALID} if no option has this name.
   */
  public Self with(String name, String value) {
    return and(Text.given(name, "name"), Text.bytes(value, name));
  }

  /** The same as with(name, text), of bytes of any values. */
  public Self with(String name, byte[] value) {
    return and(name, Text.copy(value, name));
  }

  Self with(String name, Duration value) {
    return with(name, Text.text(value));
  }

  Self with(String name, int value) {
    return with(name, Integer.toString(value));
  }

  Self with(String name, boolean isOn) {
    return with(name, isOn ? "yes" : "no");
  }

  Self with(String name, Enum<?> value) {
    return with(name, Text.given(value, name).name().toLowerCase(Locale.ROOT).replace('_', '-'));
  }

  /** For one call; freed by the caller. Null for all the defaults. */
  @Nullable SWIGTYPE_p_rl_acquire_options make(NamedLock.@Nullable Kind kind) {
    if (values.isEmpty() && kind == null) {
      return null;
    }
    SWIGTYPE_p_rl_acquire_options made = Rlc.acquire_options_new();
    if (made == null) {
      throw RedlatchException.of(Status.E_NO_MEMORY, "acquire", "", "");
    }
    for (Value value : values) {
      Rlc.acquire_options_set(made, value.name, value.text, null); // the acquire has the mistake
    }
    if (kind != null) {
      kind.set(made);
    }
    return made;
  }

  /** The options that are set. */
  @Override
  public String toString() {
    Map<String, String> last = new LinkedHashMap<>();
    values.forEach(value -> last.put(Text.of(value.name), Text.of(value.text)));
    return last.entrySet().stream()
        .map(one -> one.getKey() + "=" + Text.shown(one.getValue()))
        .collect(Collectors.joining(", ", getClass().getSimpleName() + "[", "]"));
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.NativeLibrary;
import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_client_options;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_error;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Options of a client or a Redlock, which win over the URL. Immutable: each method returns a new
 * object.
 */
public final class ClientOptions {
  /** All the defaults. */
  public static final ClientOptions DEFAULT = new ClientOptions(Map.of(), false);

  private final Map<String, String> values;
  private final boolean isFromEnv;

  private ClientOptions(Map<String, String> values, boolean isFromEnv) {
    this.values = values;
    this.isFromEnv = isFromEnv;
  }

  /**
   * Sets an option by its name in a URL, such as "command_timeout", "holder" or "password_file".
   * docs/options.md lists them. The value is checked when a client is made.
   *
   * @throws RedlatchException with {@link Status#E_INVALID} if no option has this name.
   */
  public ClientOptions with(String name, String value) {
    Map<String, String> all = new LinkedHashMap<>(values);
    all.put(Text.given(name, "name"), Text.given(value, "value"));
    if (!OptionNames.CLIENT.contains(name)) {
      new ClientOptions(Map.of(name, ""), false).open((options, err) -> true);
    }
    return new ClientOptions(all, isFromEnv);
  }

  /** Sets a prefix for every key. */
  public ClientOptions namespace(String namespace) {
    return with("namespace", namespace);
  }

  /**
   * Reads the variables of docs/options.md, for options that neither the URL nor another option
   * sets. Nothing else in this package reads the environment.
   */
  public ClientOptions fromEnv() {
    return new ClientOptions(values, true);
  }

  /** Calls `open` with these options. */
  <T> T open(BiFunction<SWIGTYPE_p_rl_client_options, SWIGTYPE_p_rl_error, T> open) {
    NativeLibrary.load();
    SWIGTYPE_p_rl_error err = Rlc.error_new();
    SWIGTYPE_p_rl_client_options options = Rlc.client_options_new();
    try {
      boolean isSet = !isFromEnv || Rlc.client_options_set_from_env(options, err) == 0;
      for (Map.Entry<String, String> one : values.entrySet()) {
        byte[] name = Text.bytes(one.getKey(), "the name of an option");
        byte[] value = Text.bytes(one.getValue(), "the value of an option");
        isSet = isSet && Rlc.client_options_set(options, name, value, err) == 0;
      }
      T opened = isSet ? open.apply(options, err) : null;
      if (opened == null) {
        throw Errors.of(err, "open", "");
      }
      return opened;
    } finally {
      Rlc.client_options_free(options);
      Rlc.error_free(err);
    }
  }

  private static String shown(Map.Entry<String, String> option) {
    // It may be a URL with its password in the place of another value.
    String value = option.getValue();
    boolean isHidden =
        OptionNames.HIDDEN.contains(option.getKey()) || value.matches("(?s).*[/@;&=?].*");
    return option.getKey() + "=" + (isHidden ? "***" : Text.shown(value));
  }

  /** The options that are set, without secrets. */
  @Override
  public String toString() {
    Stream<String> all = values.entrySet().stream().map(ClientOptions::shown);
    Stream<String> env = isFromEnv ? Stream.of("from the environment") : Stream.of();
    return Stream.concat(all, env).collect(Collectors.joining(", ", "ClientOptions[", "]"));
  }
}

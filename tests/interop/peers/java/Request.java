// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.yaml.snakeyaml.LoaderOptions;
import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.constructor.SafeConstructor;

/** One line of JSON, read by the parser of YAML that Redisson brings along, and its answer. */
final class Request {
  private final Map<String, Object> values;

  private Request(Map<String, Object> values) {
    this.values = values;
  }

  static Request parse(String line) {
    return new Request(new Yaml(new SafeConstructor(new LoaderOptions())).load(line));
  }

  boolean has(String name) {
    return values.containsKey(name);
  }

  String text(String name) {
    return (String) values.get(name);
  }

  long number(String name) {
    return ((Number) values.get(name)).longValue();
  }

  String reply(long from, long to, Object value, Throwable error) {
    String line = "{\"id\":" + number("id") + ",\"from\":" + from + ",\"to\":" + to;
    if (error == null) {
      return line + ",\"value\":" + json(value) + "}";
    }
    return line + ",\"error\":" + json(error.getClass().getSimpleName() + ": " + error.getMessage())
        + "}";
  }

  private static String json(Object value) {
    if (value instanceof String) {
      return quoted((String) value);
    }
    if (value instanceof List) {
      return ((List<?>) value)
          .stream().map(Request::json).collect(Collectors.joining(",", "[", "]"));
    }
    if (value instanceof Map) {
      return ((Map<?, ?>) value)
          .entrySet().stream()
              .map(entry -> json(entry.getKey()) + ":" + json(entry.getValue()))
              .collect(Collectors.joining(",", "{", "}"));
    }
    return String.valueOf(value); // A number, a truth, or null.
  }

  private static String quoted(String text) {
    StringBuilder made = new StringBuilder("\"");
    for (char c : text.toCharArray()) {
      if (c == '"' || c == '\\' || c < ' ') {
        made.append(String.format("\\u%04x", (int) c));
      } else {
        made.append(c);
      }
    }
    return made.append('"').toString();
  }
}

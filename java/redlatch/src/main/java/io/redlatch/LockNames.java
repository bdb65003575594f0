// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.RlcConstants;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_error;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_names;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;

/** The names of one lock of several, in the order of the caller. The library has accepted them. */
final class LockNames {
  private final List<LockName> names;

  private LockNames(List<LockName> names) {
    this.names = names;
    use(made -> true); // a mistake shows now
  }

  static LockNames of(List<LockName> names) {
    List<LockName> copy = new ArrayList<>(Text.given(names, "names"));
    copy.forEach(name -> Text.given(name, "a name of the list"));
    if (copy.isEmpty()) {
      throw invalid("names must be 1 to " + RlcConstants.RL_MAX_NAMES + " (got 0)");
    }
    return new LockNames(copy);
  }

  /** A writer of the path, and readers of all that it is in, from the top. */
  static LockNames ofPath(byte[] path) {
    List<Integer> ends = endsOfComponents(path);
    List<LockName> names = new ArrayList<>(List.of(LockName.write(path)));
    for (int end : ends.subList(0, ends.size() - 1)) {
      names.add(LockName.read(Arrays.copyOf(path, end)));
    }
    return new LockNames(names);
  }

  /** Checks their number before any copy: those of a long path would be very long together. */
  private static List<Integer> endsOfComponents(byte[] path) {
    List<Integer> ends = new ArrayList<>();
    int begin = 0;
    for (int i = 0; i <= path.length; i++) {
      if (i < path.length && path[i] != '/') {
        continue;
      }
      if (i == begin) {
        String shown = Text.quoted(Text.of(path));
        throw invalid("path must have no empty component (got " + shown + ")");
      }
      ends.add(i);
      begin = i + 1;
    }
    if (ends.size() > RlcConstants.RL_MAX_NAMES) {
      String most = "path must have at most " + RlcConstants.RL_MAX_NAMES + " components";
      throw invalid(most + " (got " + ends.size() + ")");
    }
    return ends;
  }

  private static RedlatchException invalid(String why) {
    return RedlatchException.of(Status.E_INVALID, "acquire", "", why);
  }

  List<String> texts() {
    return names.stream().map(LockName::name).toList();
  }

  /** Returns the result of `call`, which has the list of the library only meanwhile. */
  <T> T use(Function<SWIGTYPE_p_rl_names, T> call) {
    SWIGTYPE_p_rl_names made = Rlc.names_new();
    if (made == null) {
      throw RedlatchException.of(Status.E_NO_MEMORY, "acquire", "", "");
    }
    try {
      Errors.check("acquire", "", err -> isFilled(made, err) ? made : null);
      return call.apply(made);
    } finally {
      Rlc.names_free(made);
    }
  }

  private boolean isFilled(SWIGTYPE_p_rl_names made, SWIGTYPE_p_rl_error err) {
    return names.stream()
        .allMatch(name -> Rlc.names_add(made, name.bytes(), name.modeNumber(), err) == 0);
  }
}

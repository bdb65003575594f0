// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_error;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Calls that fill an error of the library. */
final class Errors {
  private Errors() {}

  static RedlatchException of(@Nullable SWIGTYPE_p_rl_error err, String op, String name) {
    Status status = err == null ? Status.E_NO_MEMORY : Status.of(Rlc.error_status(err));
    return RedlatchException.of(status, op, name, Text.of(Rlc.error_message(err)));
  }

  /** Returns the result of `call`, or throws its error. */
  static <T> T check(String op, String name, Function<SWIGTYPE_p_rl_error, @Nullable T> call) {
    SWIGTYPE_p_rl_error err = Rlc.error_new();
    try {
      T result = call.apply(err);
      if (result == null) {
        throw of(err, op, name);
      }
      return result;
    } finally {
      Rlc.error_free(err);
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import org.jspecify.annotations.Nullable;

/** What newer versions of Java know about threads. */
final class Threads {
  private static final @Nullable MethodHandle IS_VIRTUAL = find();

  private Threads() {}

  static boolean isVirtual() {
    if (IS_VIRTUAL == null) {
      return false;
    }
    try {
      return (boolean) IS_VIRTUAL.invokeExact(Thread.currentThread());
    } catch (Throwable failure) {
      throw new AssertionError(failure);
    }
  }

  private static @Nullable MethodHandle find() {
    try {
      MethodType type = MethodType.methodType(boolean.class);
      return MethodHandles.publicLookup().findVirtual(Thread.class, "isVirtual", type);
    } catch (NoSuchMethodException | IllegalAccessException older) {
      return null;
    }
  }
}

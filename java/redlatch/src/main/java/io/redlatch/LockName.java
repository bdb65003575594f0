// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.RlcConstants;
import java.util.Arrays;

/** A name with its mode, one of several for {@link Redlatch#lockAll(LockName...)}. */
public final class LockName {
  private final byte[] name;
  private final Lease.Mode mode;

  private LockName(byte[] name, Lease.Mode mode) {
    this.name = name;
    this.mode = mode;
  }

  /** The name, as UTF-8, to read: together with other readers. */
  public static LockName read(String name) {
    return new LockName(Text.bytes(name, "name"), Lease.Mode.READ);
  }

  /** The same as read(text), of any bytes. */
  public static LockName read(byte[] name) {
    return new LockName(Text.copy(name, "name"), Lease.Mode.READ);
  }

  /** The name, as UTF-8, to write: alone. It is the lock of {@link Redlatch#lock} of that name. */
  public static LockName write(String name) {
    return new LockName(Text.bytes(name, "name"), Lease.Mode.WRITE);
  }

  /** The same as write(text), of any bytes. */
  public static LockName write(byte[] name) {
    return new LockName(Text.copy(name, "name"), Lease.Mode.WRITE);
  }

  /** The name, decoded as UTF-8. */
  public String name() {
    return Text.of(name);
  }

  /** READ or WRITE. */
  public Lease.Mode mode() {
    return mode;
  }

  byte[] bytes() {
    return name;
  }

  /** As the C ABI has it. */
  int modeNumber() {
    return mode == Lease.Mode.READ ? RlcConstants.RL_MODE_READ : RlcConstants.RL_MODE_WRITE;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof LockName same && Arrays.equals(name, same.name) && mode == same.mode;
  }

  @Override
  public int hashCode() {
    return 31 * Arrays.hashCode(name) + mode.hashCode();
  }

  @Override
  public String toString() {
    return "LockName[" + name() + ", " + mode + "]";
  }
}

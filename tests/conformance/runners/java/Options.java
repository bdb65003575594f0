// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import io.redlatch.ClientOptions;
import io.redlatch.LockOptions;
import io.redlatch.NamedLock;
import io.redlatch.Redlatch;
import io.redlatch.RedlatchException;
import io.redlatch.Status;

/** Options of a line, as users of Java say them. */
final class Options {
  private Options() {}

  static ClientOptions ofClient(Values values) {
    ClientOptions options = ClientOptions.DEFAULT;
    for (String key : values.keys()) {
      if (!key.equals("url") && !key.equals("urls")) {
        options = options.with(key, values.text(key));
      }
    }
    return options;
  }

  /** Null for what cannot be said in Java. */
  static LockOptions ofLock(Values values) {
    LockOptions options = LockOptions.DEFAULT;
    for (String key : values.keys()) {
      options = with(options, key, values);
      if (options == null) {
        return null;
      }
    }
    return options;
  }

  private static LockOptions with(LockOptions options, String key, Values values) {
    switch (key) {
      case "ttl_ms":
        return options.ttl(values.duration(key));
      case "max_hold_ms":
        return options.maxHold(values.duration(key));
      case "max_local_handoffs":
        return options.maxLocalHandoffs(values.small(key));
      case "yield_every":
        return options.yieldEvery(values.small(key));
      case "yield_ms":
        return options.yieldFor(values.duration(key));
      case "min_replicas":
        return options.minReplicas(values.small(key));
      case "sync_timeout_ms":
        return options.syncTimeout(values.duration(key));
      case "retain_ms":
        return Defects.has("forget_retain") ? options : options.retain(values.duration(key));
      case "label":
        return options.label(values.bytes(key));
      case "renew":
        return isSwitch(values, key) ? options.renew(values.number(key) == 1) : null;
      case "confirm":
        return isSwitch(values, key) ? options.confirm(values.number(key) == 1) : null;
      case "format":
        return withFormat(options, values.text(key));
      case "owner":
        boolean isReentrant = values.text("kind").equals("reentrant");
        return isReentrant ? options : options.owner(Defects.ownOwner(values.bytes(key)));
      default:
        return options; // What tells which lock it is.
    }
  }

  private static boolean isSwitch(Values values, String key) {
    return values.number(key) == 0 || values.number(key) == 1;
  }

  private static LockOptions withFormat(LockOptions options, String name) {
    for (LockOptions.Format format : LockOptions.Format.values()) {
      if (format.name().equalsIgnoreCase(name.replace('-', '_'))) {
        return options.format(format);
      }
    }
    return null;
  }

  /** Asks a client that was closed: it looks at them first. */
  static Answer check(Values values, LockOptions options) {
    if (options == null) {
      return new Answer(Status.E_INVALID);
    }
    Redlatch closed = Redlatch.open("redis://localhost");
    closed.close();
    try {
      if (values.isAll()) {
        closed.lockAll(values.names()).with(options).tryAcquire();
      } else if (values.isSemaphore()) {
        closed.semaphore("x", values.small("limit")).with(options).tryAcquire(values.permits());
      } else {
        boolean isReentrant = values.text("kind").equals("reentrant");
        NamedLock lock =
            isReentrant
                ? closed.reentrantLock(new byte[] {'x'}, values.bytes("owner"))
                : closed.lock("x");
        lock.with(options).tryAcquire();
      }
      throw new AssertionError("granted by a client that is closed");
    } catch (RedlatchException failure) {
      return failure.status() == Status.E_CLOSED ? Answer.ok() : Answer.of(failure);
    }
  }
}

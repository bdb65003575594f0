// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import static java.nio.charset.StandardCharsets.UTF_8;

import io.redlatch.Lease;
import io.redlatch.RedlatchException;
import io.redlatch.Status;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/**
 * For Java programs that tests start: what they call of redlatch is written down, as record.h does
 * it for programs in C. tests/history/README.md says what the records mean.
 *
 * <pre>{@code
 * Lease lease = record.acquire(new Words().and("name", name), lock::acquire);
 * }</pre>
 */
final class Recorded {
  /** Takes a lock; null if it is not to be had at once. */
  interface Take {
    Lease take() throws InterruptedException;
  }

  /** Changes a lease. */
  interface Change {
    void change() throws InterruptedException;
  }

  private static final Map<Status, String> OUTCOMES =
      Map.of(
          Status.OK, "ok",
          Status.BUSY, "busy",
          Status.TIMEOUT, "timeout",
          Status.CANCELLED, "cancelled",
          Status.E_LOST, "lost",
          Status.E_NOT_HELD, "not_held",
          Status.E_DEADLOCK, "deadlock",
          Status.E_ALREADY_HELD, "already_held",
          Status.E_OUTCOME_UNKNOWN, "unknown");

  private static final long PID = ProcessHandle.current().pid();

  /** Each record is one write. A channel would be closed by an interrupt. */
  private final FileOutputStream file;

  private final AtomicLong last = new AtomicLong();

  /** Does nothing, unless REDLATCH_HISTORY names a folder. */
  Recorded() {
    String folder = System.getenv("REDLATCH_HISTORY");
    try {
      file = folder == null ? null : new FileOutputStream(folder + "/" + PID + ".log", true);
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
  }

  /** What takes a lock; the words say what the library is told. */
  Lease acquire(Words words, Take take) throws InterruptedException {
    String id = call("acquire", asked().and(words));
    try {
      Lease lease = take.take();
      returned(id, lease == null ? Status.BUSY : Status.OK, lease);
      return lease;
    } catch (RedlatchException failure) {
      returned(id, failure.status(), null);
      throw failure;
    } catch (InterruptedException interrupted) {
      returned(id, Status.CANCELLED, null);
      throw interrupted;
    }
  }

  /** As acquire(). What is returned has been written down. */
  CompletableFuture<Lease> acquireAsync(Words words, Supplier<CompletableFuture<Lease>> take) {
    String id = call("acquire", asked().and(words));
    try {
      return take.get()
          .whenComplete((lease, failure) -> returned(id, statusOf(failure), lease));
    } catch (RedlatchException failure) {
      returned(id, failure.status(), null);
      throw failure;
    }
  }

  /** What an acquisition has that says nothing else. */
  private static Words asked() {
    return new Words().and("lease_ms", 30000).and("burst", 16).and("renew", 1).and("mode", "write");
  }

  /** What goes on with a lease. */
  Lease attach(Words words, Supplier<Lease> attach) {
    String id = call("attach", new Words().and("lease_ms", 30000).and(words));
    try {
      Lease lease = attach.get();
      returned(id, Status.OK, lease);
      return lease;
    } catch (RedlatchException failure) {
      returned(id, failure.status(), null);
      throw failure;
    }
  }

  /** What changes a lease: extend, upgrade or downgrade. */
  void change(String op, Lease lease, Words words, Change change) throws InterruptedException {
    String id = call(op, describe(lease).and(words));
    try {
      change.change();
      returned(id, Status.OK, lease);
    } catch (RedlatchException failure) {
      returned(id, failure.status(), null);
      throw failure;
    } catch (InterruptedException interrupted) {
      returned(id, Status.CANCELLED, null);
      throw interrupted;
    }
  }

  /** What gives a lease back, and says whether the lock is free. */
  boolean release(Lease lease, BooleanSupplier release) {
    String id = call("release", describe(lease));
    try {
      boolean isFree = release.getAsBoolean();
      put("return", id, System.nanoTime(), isFree ? "ok" : "still_held");
      return isFree;
    } catch (RedlatchException failure) {
      returned(id, failure.status(), null);
      throw failure;
    }
  }

  /** What takes a lock away from whoever has it. */
  void force(byte[] name, Runnable force) {
    String id = call("force", new Words().and("name", name));
    try {
      force.run();
      returned(id, Status.OK, null);
    } catch (RedlatchException failure) {
      returned(id, failure.status(), null);
      throw failure;
    }
  }

  /** What hands a lease over, and answers its token. */
  String detach(Lease lease, Supplier<String> detach) {
    String id = call("detach", describe(lease));
    try {
      String token = detach.get();
      returned(id, Status.OK, null);
      return token;
    } catch (RedlatchException failure) {
      returned(id, failure.status(), null);
      throw failure;
    }
  }

  /** Is about to happen to a client. */
  void close(String client) {
    call("close", new Words().and("client", client));
  }

  /** What a lease is like now. */
  void look(Lease lease) {
    put("look", Long.toString(PID), System.nanoTime(), describe(lease));
  }

  // ---- records ----

  /** The number that the return of this call must name. */
  private String call(String op, Words words) {
    String id = PID + "." + last.incrementAndGet();
    put("call", id, System.nanoTime(), op + " " + words);
    return id;
  }

  /** The lease is what was granted or changed, if it went well. */
  private void returned(String id, Status status, Lease lease) {
    long now = System.nanoTime();
    Words words = new Words();
    if (lease != null && file != null) {
      String mode = lease.mode().name().toLowerCase(Locale.ROOT);
      words = describe(lease).and("mode", mode).and("holds", lease.holdCount());
    }
    put("return", id, now, OUTCOMES.getOrDefault(status, "error") + " " + words);
  }

  /** Who it is, and until when it is believed by the local clock; 0 is not any more. */
  private Words describe(Lease lease) {
    Words words = new Words();
    if (file == null) {
      return words;
    }
    long now = System.nanoTime();
    long remaining = lease.remaining().toNanos();
    return words
        .and("token", lease.token())
        .and("fence", lease.fence())
        .and("until", remaining > 0 ? now + remaining : 0);
  }

  /** The clock is CLOCK_MONOTONIC on Linux: that of all processes of a host. */
  private void put(String kind, String id, long now, Object rest) {
    if (file == null) {
      return;
    }
    try {
      file.write((kind + " " + id + " " + now + " " + rest + "\n").getBytes(UTF_8));
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
  }

  private static Status statusOf(Throwable failure) {
    if (failure == null) {
      return Status.OK;
    }
    return failure instanceof RedlatchException known ? known.status() : Status.CANCELLED;
  }
}

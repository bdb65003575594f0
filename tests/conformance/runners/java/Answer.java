// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import static java.nio.charset.StandardCharsets.UTF_8;

import io.redlatch.Lease;
import io.redlatch.RedlatchException;
import io.redlatch.Status;

/** How an operation went, and what it has to show. */
final class Answer {
  private final Status status;
  private final StringBuilder shown = new StringBuilder();

  Answer(Status status) {
    this.status = status;
  }

  static Answer ok() {
    return new Answer(Status.OK);
  }

  static Answer of(RedlatchException failure) {
    return new Answer(failure.status());
  }

  static Answer granted(Lease lease) {
    return ok()
        .add("fence", lease.fence())
        .add("token", lease.token())
        .add("mode", lease.mode())
        .add("hold_count", lease.holdCount());
  }

  Answer add(String key, Object value) {
    return add(key, value.toString().getBytes(UTF_8));
  }

  Answer add(String key, byte[] value) {
    shown.append(' ').append(key).append('=').append(Values.encode(value));
    return this;
  }

  @Override
  public String toString() {
    return Defects.mistaken(status).name() + shown;
  }
}

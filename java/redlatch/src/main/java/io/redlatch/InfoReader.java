// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.RlcConstants;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_info;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Makes a LockInfo of what the library knows. */
final class InfoReader {
  private InfoReader() {}

  /** One row of one part of what the library knows. */
  private record Row(SWIGTYPE_p_rl_info info, int part, int index) {
    long number(int field) {
      return Rlc.info_number(info, part, index, field);
    }

    byte[] bytes(int field) {
      return Text.read(buffer -> Rlc.info_text(info, part, index, field, buffer));
    }

    String text(int field) {
      return Text.of(bytes(field));
    }

    Optional<Instant> time(int field) {
      long unixMs = number(field);
      return unixMs == 0 ? Optional.empty() : Optional.of(Instant.ofEpochMilli(unixMs));
    }

    Optional<Duration> remaining() {
      long left = number(RlcConstants.RL_FIELD_REMAINING_MS);
      return left < 0 ? Optional.empty() : Optional.of(Duration.ofMillis(left));
    }

    /** RL_MODE_UPGRADE is the third. */
    Lease.Mode mode() {
      return Lease.Mode.values()[(int) number(RlcConstants.RL_FIELD_MODE) - 1];
    }

    LockInfo.Holder holder() {
      return new LockInfo.Holder(
          bytes(RlcConstants.RL_FIELD_TOKEN),
          text(RlcConstants.RL_FIELD_HOLDER),
          bytes(RlcConstants.RL_FIELD_LABEL),
          mode(),
          time(RlcConstants.RL_FIELD_SINCE_MS),
          remaining());
    }

    NodeInfo node() {
      boolean hasClock = Rlc.info_has(info, part, index, RlcConstants.RL_FIELD_CLOCK_MS) != 0;
      return new NodeInfo(
          text(RlcConstants.RL_FIELD_ADDRESS),
          NodeInfo.State.values()[(int) number(RlcConstants.RL_FIELD_STATE)],
          text(RlcConstants.RL_FIELD_REASON),
          NodeInfo.Role.values()[(int) number(RlcConstants.RL_FIELD_ROLE)],
          text(RlcConstants.RL_FIELD_VERSION),
          hasClock
              ? Optional.of(Duration.ofMillis(number(RlcConstants.RL_FIELD_CLOCK_MS)))
              : Optional.empty(),
          rows(info, RlcConstants.RL_PART_FINDING)
              .filter(row -> row.number(RlcConstants.RL_FIELD_NODE) == index)
              .map(Row::finding)
              .toList());
    }

    Finding finding() {
      return new Finding(
          text(RlcConstants.RL_FIELD_ADDRESS),
          text(RlcConstants.RL_FIELD_ID),
          Finding.Level.values()[(int) number(RlcConstants.RL_FIELD_LEVEL)],
          text(RlcConstants.RL_FIELD_SEEN),
          text(RlcConstants.RL_FIELD_ADVICE));
    }

    LockInfo.Waiter waiter() {
      return new LockInfo.Waiter(
          text(RlcConstants.RL_FIELD_TOKEN),
          text(RlcConstants.RL_FIELD_HOLDER),
          mode(),
          time(RlcConstants.RL_FIELD_SINCE_MS));
    }
  }

  /** The servers of a client. Frees `info`. */
  static List<NodeInfo> nodesOf(SWIGTYPE_p_rl_info info) {
    try {
      return rows(info, RlcConstants.RL_PART_NODE).map(Row::node).toList();
    } finally {
      Rlc.info_free(info);
    }
  }

  /** The findings of a check of the servers of a client. Frees `info`. */
  static List<Finding> findingsOf(SWIGTYPE_p_rl_info info) {
    try {
      return rows(info, RlcConstants.RL_PART_FINDING).map(Row::finding).toList();
    } finally {
      Rlc.info_free(info);
    }
  }

  /** Frees `info`. */
  static LockInfo of(SWIGTYPE_p_rl_info info) {
    try {
      return read(info);
    } finally {
      Rlc.info_free(info);
    }
  }

  static LockInfo read(SWIGTYPE_p_rl_info info) {
    Row lock = new Row(info, RlcConstants.RL_PART_LOCK, 0);
    return new LockInfo(
        lock.bytes(RlcConstants.RL_FIELD_NAME),
        LockInfo.State.values()[(int) lock.number(RlcConstants.RL_FIELD_STATE)],
        lock.text(RlcConstants.RL_FIELD_TYPE),
        lock.remaining(),
        lock.number(RlcConstants.RL_FIELD_FENCE),
        lock.bytes(RlcConstants.RL_FIELD_OWNER),
        lock.number(RlcConstants.RL_FIELD_HOLDING),
        lock.number(RlcConstants.RL_FIELD_WAITING),
        Instant.ofEpochMilli(lock.number(RlcConstants.RL_FIELD_SERVER_MS)),
        rows(info, RlcConstants.RL_PART_HOLDER).map(Row::holder).toList(),
        rows(info, RlcConstants.RL_PART_WAITER).map(Row::waiter).toList());
  }

  private static Stream<Row> rows(SWIGTYPE_p_rl_info info, int part) {
    return IntStream.range(0, Rlc.info_count(info, part)).mapToObj(i -> new Row(info, part, i));
  }
}

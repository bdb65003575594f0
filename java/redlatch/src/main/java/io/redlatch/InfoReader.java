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
import java.util.OptionalLong;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Makes a LockInfo, and other records, of what the library knows. */
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

    Instant now(int field) {
      return Instant.ofEpochMilli(number(field));
    }

    Optional<Duration> remaining(int field) {
      long left = number(field);
      return left < 0 ? Optional.empty() : Optional.of(Duration.ofMillis(left));
    }

    Optional<Duration> clock(int field) {
      boolean isKnown = Rlc.info_has(info, part, index, field) != 0;
      return isKnown ? Optional.of(Duration.ofMillis(number(field))) : Optional.empty();
    }

    /** RL_MODE_UPGRADE is the third. */
    Lease.Mode mode(int field) {
      return Lease.Mode.values()[(int) number(field) - 1];
    }

    String candidate() {
      return text(RlcConstants.RL_FIELD_CANDIDATE);
    }

    Leader asLeader(long term) {
      return new Leader(candidate(), term, time(RlcConstants.RL_FIELD_SINCE_MS));
    }

    // ---- readers: made of info_fields.def by tools/gen_info.py ----
    LockInfo asLockInfo(
        List<LockInfo.Holder> holders,
        List<LockInfo.Waiter> waiters,
        List<LockInfo.Mark> marks) {
      return new LockInfo(
          bytes(RlcConstants.RL_FIELD_NAME),
          LockInfo.State.values()[(int) number(RlcConstants.RL_FIELD_STATE)],
          text(RlcConstants.RL_FIELD_TYPE),
          remaining(RlcConstants.RL_FIELD_REMAINING_MS),
          number(RlcConstants.RL_FIELD_FENCE),
          bytes(RlcConstants.RL_FIELD_OWNER),
          number(RlcConstants.RL_FIELD_HOLDING),
          number(RlcConstants.RL_FIELD_WAITING),
          number(RlcConstants.RL_FIELD_USED),
          number(RlcConstants.RL_FIELD_LIMIT),
          number(RlcConstants.RL_FIELD_CAP),
          remaining(RlcConstants.RL_FIELD_CAP_REMAINING_MS),
          now(RlcConstants.RL_FIELD_SERVER_MS),
          holders,
          waiters,
          marks);
    }

    LockInfo.Holder asHolder() {
      return new LockInfo.Holder(
          bytes(RlcConstants.RL_FIELD_TOKEN),
          text(RlcConstants.RL_FIELD_HOLDER),
          number(RlcConstants.RL_FIELD_PERMITS),
          bytes(RlcConstants.RL_FIELD_LABEL),
          bytes(RlcConstants.RL_FIELD_CANDIDATE),
          number(RlcConstants.RL_FIELD_RECALLABLE),
          mode(RlcConstants.RL_FIELD_MODE),
          time(RlcConstants.RL_FIELD_SINCE_MS),
          remaining(RlcConstants.RL_FIELD_REMAINING_MS));
    }

    LockInfo.Waiter asWaiter() {
      return new LockInfo.Waiter(
          text(RlcConstants.RL_FIELD_TOKEN),
          text(RlcConstants.RL_FIELD_HOLDER),
          bytes(RlcConstants.RL_FIELD_CANDIDATE),
          mode(RlcConstants.RL_FIELD_MODE),
          time(RlcConstants.RL_FIELD_SINCE_MS));
    }

    LockInfo.Mark asMark() {
      return new LockInfo.Mark(
          time(RlcConstants.RL_FIELD_SINCE_MS),
          remaining(RlcConstants.RL_FIELD_REMAINING_MS),
          bytes(RlcConstants.RL_FIELD_KEY),
          number(RlcConstants.RL_FIELD_DONE),
          number(RlcConstants.RL_FIELD_TRIES));
    }

    NodeInfo asNodeInfo(List<Finding> findings) {
      return new NodeInfo(
          text(RlcConstants.RL_FIELD_ADDRESS),
          NodeInfo.State.values()[(int) number(RlcConstants.RL_FIELD_STATE)],
          text(RlcConstants.RL_FIELD_REASON),
          NodeInfo.Role.values()[(int) number(RlcConstants.RL_FIELD_ROLE)],
          text(RlcConstants.RL_FIELD_VERSION),
          clock(RlcConstants.RL_FIELD_CLOCK_MS),
          findings);
    }

    Finding asFinding() {
      return new Finding(
          text(RlcConstants.RL_FIELD_ADDRESS),
          text(RlcConstants.RL_FIELD_ID),
          Finding.Level.values()[(int) number(RlcConstants.RL_FIELD_LEVEL)],
          text(RlcConstants.RL_FIELD_SEEN),
          text(RlcConstants.RL_FIELD_ADVICE));
    }
    // ---- end of readers ----
  }

  /** The servers of a client. Frees `info`. */
  static List<NodeInfo> nodesOf(SWIGTYPE_p_rl_info info) {
    try {
      return rows(info, RlcConstants.RL_PART_NODE)
          .map(node -> node.asNodeInfo(findings(info, node.index)))
          .toList();
    } finally {
      Rlc.info_free(info);
    }
  }

  private static List<Finding> findings(SWIGTYPE_p_rl_info info, int node) {
    return rows(info, RlcConstants.RL_PART_FINDING)
        .filter(row -> row.number(RlcConstants.RL_FIELD_NODE) == node)
        .map(Row::asFinding)
        .toList();
  }

  /** The findings of a check of the servers of a client. Frees `info`. */
  static List<Finding> findingsOf(SWIGTYPE_p_rl_info info) {
    try {
      return rows(info, RlcConstants.RL_PART_FINDING).map(Row::asFinding).toList();
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
    return new Row(info, RlcConstants.RL_PART_LOCK, 0)
        .asLockInfo(
            rows(info, RlcConstants.RL_PART_HOLDER).map(Row::asHolder).toList(),
            rows(info, RlcConstants.RL_PART_WAITER).map(Row::asWaiter).toList(),
            rows(info, RlcConstants.RL_PART_MARK).map(Row::asMark).toList());
  }

  /** The numbers of a semaphore, for a caller with this limit. Frees `info`. */
  static SemaphoreStats statsOf(SWIGTYPE_p_rl_info info, int limit) {
    try {
      Row row = new Row(info, RlcConstants.RL_PART_LOCK, 0);
      long cap = row.number(RlcConstants.RL_FIELD_CAP);
      return new SemaphoreStats(
          row.number(RlcConstants.RL_FIELD_USED),
          cap < 0 ? limit : Math.min(cap, limit),
          cap < 0 ? OptionalLong.empty() : OptionalLong.of(cap),
          row.number(RlcConstants.RL_FIELD_WAITING));
    } finally {
      Rlc.info_free(info);
    }
  }

  /** The state of an election on the server. The position is for the next watch. */
  record ElectionState(Optional<Leader> leader, List<String> participants, long position) {}

  /** The state of an election. Frees `info`. */
  static ElectionState electionOf(SWIGTYPE_p_rl_info info) {
    try {
      Row lock = new Row(info, RlcConstants.RL_PART_LOCK, 0);
      return new ElectionState(
          rows(info, RlcConstants.RL_PART_HOLDER)
              .filter(row -> !row.candidate().isEmpty())
              .map(row -> row.asLeader(lock.number(RlcConstants.RL_FIELD_FENCE)))
              .findFirst(),
          Stream.of(RlcConstants.RL_PART_HOLDER, RlcConstants.RL_PART_WAITER)
              .flatMap(part -> rows(info, part))
              .map(Row::candidate)
              .filter(Predicate.not(String::isEmpty))
              .toList(),
          lock.number(RlcConstants.RL_FIELD_POSITION));
    } finally {
      Rlc.info_free(info);
    }
  }

  private static Stream<Row> rows(SWIGTYPE_p_rl_info info, int part) {
    return IntStream.range(0, Rlc.info_count(info, part)).mapToObj(i -> new Row(info, part, i));
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import io.redlatch.Election;
import io.redlatch.Status;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * What a careless change of the binding would do, as its users see it. Without a defect each
 * function here gives back what it was given.
 */
final class Defects {
  private static final String PLANTED =
      System.getenv().getOrDefault("REDLATCH_RUNNER_DEFECT", "");

  private static final Map<Status, Status> WRONG =
      Map.of(
          Status.BUSY, Status.TIMEOUT,
          Status.STILL_HELD, Status.OK,
          Status.E_LOST, Status.E_NOT_HELD,
          Status.E_DEADLOCK, Status.BUSY,
          Status.E_ALREADY_HELD, Status.BUSY);

  private Defects() {}

  static boolean has(String defect) {
    return PLANTED.equals(defect);
  }

  /** A name that goes through C as a string. */
  static byte[] cut(byte[] name) {
    int length = 0;
    while (length < name.length && (name[length] != 0 || !has("cut_at_nul"))) {
      length++;
    }
    return Arrays.copyOf(name, length);
  }

  /** An owner that other processes do not have. */
  static byte[] ownOwner(byte[] owner) {
    if (!has("own_owner")) {
      return owner;
    }
    long process = ProcessHandle.current().pid();
    return ByteBuffer.allocate(owner.length + Long.BYTES).putLong(process).put(owner).array();
  }

  /** The wrong one of two functions. */
  static String otherMode(String op) {
    if (has("read_as_write") && op.equals("acquire_read")) {
      return "acquire_write";
    }
    return has("write_as_read") && op.equals("acquire_write") ? "acquire_read" : op;
  }

  /** A candidate that is known by the default id. */
  static Election withId(Election election, String id) {
    return has("forget_id") ? election : election.id(id);
  }

  /** A lock on one of several servers. */
  static List<String> oneNode(List<String> urls) {
    return has("one_node") ? urls.subList(0, 1) : urls;
  }

  /** A wrong line in the table of statuses. */
  static Status mistaken(Status status) {
    return has("wrong_status") ? WRONG.getOrDefault(status, status) : status;
  }
}

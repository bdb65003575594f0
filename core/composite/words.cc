// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "composite/words.h"

#include "base/message.h"

namespace redlatch::composite::words {

namespace {

Text done_by(lock::Request::Op op) {
  switch (op) {
    case lock::Request::Op::kUpgrade:
      return "upgraded";
    case lock::Request::Op::kDowngrade:
      return "downgraded";
    case lock::Request::Op::kBeginRun:
    case lock::Request::Op::kRelease:
      return "that of a run or a flight";
    default:
      return "detached";
  }
}

}  // namespace

std::string not_with_several(Text lock, lock::Request::Op op) noexcept {
  return message_of({LockName{lock}, ": a lease of several names cannot be ", done_by(op)});
}

std::string not_granted(size_t count, int64_t wait_ms, Text why) noexcept {
  return message_of({static_cast<int64_t>(count), " names were not granted within ",
                     Seconds{wait_ms}, After{": ", why}});
}

std::string part_lost(Text part, Text why) noexcept {
  return message_of({"its part ", Quoted{part}, " was lost: ", why});
}

std::string of_part(Text part, Text why) noexcept {
  return message_of({LockName{part}, ": ", why});
}

}  // namespace redlatch::composite::words

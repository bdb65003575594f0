// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockTrial: takes a lock that no caller uses, extends it, hands it to a waiter, looks at it, gives
// it back and removes its keys: all that callers do, and all the rights that they need. Its
// commands are sent together. No clock, no socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/reply.h"
#include "protocol/answer.h"
#include "protocol/command.h"
#include "protocol/keys.h"

namespace redlatch::protocol {

class LockTrial {
 public:
  using Send = std::function<void(Command &command)>;

  // `rid`, and the number before it, are no other token's of the client `cid`.
  // `tag`: in a cluster the hash tag of the lock's name, a text whose slot the node serves.
  LockTrial(std::string_view name_space, std::string_view cid, uint64_t rid,
            std::string_view tag = {});

  // Sends all commands.
  void ask(const ServerFeatures &features, const Send &send) const;
  // Takes the next reply.
  void on_reply(const Reply &reply);
  // The message of a grant came.
  void on_grant_push() { is_notified_ = true; }
  bool is_waiter(uint64_t rid) const { return rid == rid_; }
  static constexpr size_t kStepCount = 9;
  bool is_over() const { return answer_count_ == kStepCount; }

  // Each is empty if that worked.
  const std::string &why_no_lock() const { return why_no_lock_; }
  const std::string &why_no_handover() const { return why_no_handover_; }
  const std::string &why_no_inspection() const { return why_no_inspection_; }
  const std::string &why_no_list() const { return why_no_list_; }
  bool is_denied() const { return is_denied_; }  // one of them by the rights of the user
  bool is_notified() const { return is_notified_; }

 private:
  enum class Step : uint8_t {
    kTake,
    kExtend,
    kQueue,
    kInspect,
    kHandOver,
    kAskAgain,  // as a waiter without a message
    kGiveBack,
    kList,
    kRemove
  };

  void write(Command &out, Step step, const ServerFeatures &features) const;
  std::string judged(Step step, const Reply &reply);
  static std::string of_grant(const Reply &reply, bool is_wanted, Refusal &refusal);
  static std::string of_count(const Reply &reply, int64_t wanted, Refusal &refusal);

  const uint64_t rid_;
  const std::string holder_, waiter_, member_;
  const LockKeys keys_;
  const std::string mark_key_{mark_key(keys_)}, candidates_key_{candidates_key(keys_)};
  const std::string pattern_;
  size_t answer_count_ = 0;
  std::string why_no_lock_, why_no_handover_, why_no_inspection_, why_no_list_;
  bool is_denied_ = false;
  bool is_notified_ = false;
};

}  // namespace redlatch::protocol

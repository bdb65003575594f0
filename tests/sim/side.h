// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Side: what core/runtime does with the connection on which replicas confirm: it opens one to the
// server of the client's link when the service wants that, as the product's SideAttempt says, and
// carries its commands and replies.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/status.h"
#include "context.h"
#include "driver/authentication.h"
#include "driver/login_attempt.h"
#include "driver/side_attempt.h"
#include "network.h"
#include "redials.h"
#include "wallet.h"

namespace redlatch::sim {

class Client;

class Side final : public ClientEnd {
 public:
  Side(Client &client, Context &context) : client_(client), context_(context) {}

  // Of lock::Output.
  void send(Argv argv);
  void drop() { is_dropped_ = is_up_; }
  // After each call of the service: closes, sends, or opens.
  void settle();

  bool is_opening() const { return login_try_ != nullptr; }
  void wake_try();
  // Sends AUTH, if the application has given a newer login.
  void authenticate();
  uint64_t link() const { return link_; }  // 0: none
  void hang_up(Network::Ending ending);    // also when the process has ended
  void part_from(size_t server, Nanos until);

  // ClientEnd
  void received(uint64_t id, Messages messages) override;
  void closed(uint64_t id) override;

 private:
  void open();
  void go_on();
  void dialled();
  template <class Event>
  void step(const Event &event);
  void finish();
  void fail(const Outcome &why);
  void watch_limit();
  void take(const Message &message);
  void disconnect();
  void end_dial(Network::Ending ending);

  Client &client_;
  Context &context_;
  std::optional<driver::LoginAttempt> login_;  // of the attempt
  std::unique_ptr<LoginTry> login_try_;
  std::optional<driver::SideAttempt> attempt_;
  driver::Authentication auth_;
  size_t server_ = 0;
  uint64_t link_ = 0;
  uint64_t number_ = 0;  // counts attempts that have ended
  Nanos limit_ = 0;      // that of the attempt for which an event is scheduled
  bool is_up_ = false;   // between on_side_connected() and the end of the connection
  bool is_dropped_ = false;
  Redials redials_{Redials::kOfServer};
  CommandList out_;
};

}  // namespace redlatch::sim

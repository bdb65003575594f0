// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a listing takes from a server only keys that may be locks.
#include <memory>
#include <string>

#include "lock_client_world.h"

namespace redlatch {
namespace {

class ListingTest : public LockClientWorld {
 protected:
  ListingTest() {
    settings_.name_space = "app:";
    client_ = make_client();
    connect();
  }

  RequestPtr list() {
    auto request = std::make_shared<Request>(Request::What::ask<operate::List>());
    request->as<operate::List>().listing = std::make_shared<operate::Listing>();
    request->as<operate::List>().listing->pattern = "app:*";
    client_->start(request, now_);
    return request;
  }
  template <class... Keys>
  void reply_keys(const char *cursor, Keys... keys) {
    reply(MadeReply::list(MadeReply::text(cursor), MadeReply::list(MadeReply::text(keys)...)));
  }
};

TEST_F(ListingTest, keys_without_a_valid_name_are_skipped) {
  const auto request = list();
  ASSERT_EQ(sent_.front().front(), "SCAN");
  reply_keys("0", std::string(), std::string("a"), std::string("app"), std::string("app:"),
             std::string("ap:longer"), std::string(5000, 'a'), "app:" + std::string(5000, 'a'));
  EXPECT_EQ(request->status.load(), Status::kEnd);
  EXPECT_EQ(name_commands_.size(), 0u) << "they are not looked at";
}

TEST_F(ListingTest, a_lock_among_invalid_keys_is_found) {
  const std::string token = protocol::make_token(std::string(21, 'c') + "Q", 1);
  names_["app:lock"] = token;
  names_["a"] = token;
  const auto request = list();
  reply_keys("7", std::string("app:lock"), std::string("a"));
  answer_names();
  EXPECT_EQ(next_script(), "inspect");
  EXPECT_EQ(request->as<operate::List>().name, "lock");
}

}  // namespace
}  // namespace redlatch

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "passwords.h"

#include <algorithm>
#include <utility>

#include "caller.h"

namespace redlatch::sim {

Passwords::Passwords(Context &context)
    : context_(context),
      random_(context.plan.seed, 40'000),
      newest_(Server::kPassword),
      accepted_{newest_} {}

bool Passwords::is_accepted(std::string_view password) const {
  return std::find(accepted_.begin(), accepted_.end(), password) != accepted_.end();
}

bool Passwords::rotate() {
  if (is_rotating_) return false;
  is_rotating_ = true;
  const std::string old = newest_;
  newest_ = std::string(Server::kPassword) + std::to_string(++count_);
  const Nanos lead = random_.chance(400) ? random_.between(1, 1'500) * kMs : 0;
  const bool is_sudden = random_.chance(350);
  const Nanos both = is_sudden ? 0 : random_.between(100, 6'000) * kMs;
  context_.trace.say(context_.schedule.now(), "the password becomes %s in %lld ms, %s",
                     newest_.c_str(), static_cast<long long>(lead / kMs),
                     is_sudden ? "at once" : "beside the old one");
  for (const Slot &slot : context_.slots) {
    if (slot.client) slot.client->wallet().hear(lead + both);
  }
  if (!is_sudden) context_.schedule.in(lead, [this, old] { accept({old, newest_}); });
  context_.schedule.in(lead + both, [this] {
    accept({newest_});
    is_rotating_ = false;
  });
  return true;
}

void Passwords::accept(std::vector<std::string> passwords) {
  const auto mark = [this] {
    for (const Slot &slot : context_.slots) {
      if (slot.client) slot.client->wallet().mark();
    }
  };
  mark();
  accepted_ = std::move(passwords);
  for (const auto &server : context_.servers) server->set_passwords(accepted_);
  context_.trace.say(context_.schedule.now(), "the servers accept %s%s", accepted_.front().c_str(),
                     accepted_.size() > 1 ? ", and the new password" : " alone");
  mark();
}

}  // namespace redlatch::sim

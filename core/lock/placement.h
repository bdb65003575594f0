// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Placement: decides at which server a lock is, in a cluster. core/cluster is one. The client calls
// it in the middle of its own work: redirected() may hold the slot back, ask_elsewhere() may add a
// server and send, and neither does more.
#pragma once

#include <memory>

#include "base/settings.h"
#include "lock/request.h"
#include "protocol/slots.h"

namespace redlatch::lock {

struct DelegatedCommand;

class Placement {
 public:
  // `server` does not serve a slot that it was asked about. Nothing was carried out there. After
  // kMoved nothing about this slot is sent before LockClient::resume().
  virtual void redirected(const Server &server, const protocol::Redirect &redirect) = 0;
  // The server of this command is about to give its slot away, and the keys have moved already.
  // @return whether the server at `to` was asked.
  virtual bool ask_elsewhere(const HostPort &to,
                             const std::shared_ptr<DelegatedCommand> &delegated) = 0;
  // All locks of one server were listed. @return whether the request is started again at another.
  virtual bool continues_list(const std::shared_ptr<Request> &request) = 0;

 protected:
  ~Placement() = default;
};

}  // namespace redlatch::lock

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// ServerAttachment: keeps the embedded server of a folder running for a client, and starts it if
// necessary. Owned by the client's link, used by one thread at a time.
#pragma once

#include "base/clock.h"
#include "base/settings.h"
#include "base/status.h"
#include "embedded/server_dir.h"
#include "host/descriptor.h"
#include "net/connection.h"

namespace redlatch::embedded {

class ServerAttachment {
 public:
  explicit ServerAttachment(const Settings &settings) : settings_(settings) {}

  // Connect to the folder's server, and start one if none runs; at most until `limit`, or until
  // `wake_fd` turns readable.
  Outcome dial(net::Connection &connection, Nanos limit, int wake_fd);
  void leave() {
    clients_.close();
    dir_ = {};
  }

 private:
  Outcome join(Nanos limit, int wake_fd);
  Outcome try_join(bool &is_done);
  Outcome start(const Descriptor &lock, Nanos limit, int wake_fd) const;

  const Settings &settings_;
  ServerDir dir_;
  Descriptor clients_;  // the file of that name, locked
};

}  // namespace redlatch::embedded

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Name resolution with a time limit, which getaddrinfo() itself does not have.
#pragma once

#include <netdb.h>

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/dial_failure.h"

namespace redlatch::net {

struct AddressDeleter {
  void operator()(addrinfo *list) const { freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, AddressDeleter>;

// Look up `host` and `port` for TCP, until `limit` or until `wake_fd` turns readable.
DialFailure resolve(const std::string &host, const std::string &port, Nanos limit, int wake_fd,
                    AddressList &addresses);

}  // namespace redlatch::net

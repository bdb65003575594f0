// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "net/resolve.h"

#include <poll.h>

#include <algorithm>
#include <list>

#include "base/mutex.h"
#include "base/thread_annotations.h"
#include "host/clock.h"

namespace redlatch::net {

namespace {

AddressList look_up(const std::string &host, const std::string &port, int flags, int &error) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo *list = nullptr;
  error = getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
  return AddressList(error == 0 ? list : nullptr);
}

#ifdef __GLIBC__

// A query to the resolver. It must not move until it is answered or cancelled.
struct Query {
  Query(const std::string &host_, const std::string &port_) : host(host_), port(port_) {
    hints.ai_socktype = SOCK_STREAM;
    block.ar_name = host.c_str();
    block.ar_service = port.c_str();
    block.ar_request = &hints;
  }
  std::string host, port;
  addrinfo hints{};
  gaicb block{};
};

// Queries that timed out and could not be cancelled. They stay here until they are answered.
class Stragglers {
 public:
  void keep(std::list<Query> &query) {
    const MutexLock lock(mutex_);
    sweep();
    queries_.splice(queries_.end(), query);
  }

 private:
  void sweep() REQUIRES(mutex_) {
    queries_.remove_if([](Query &query) {
      if (gai_error(&query.block) == EAI_INPROGRESS) return false;
      if (query.block.ar_result != nullptr) freeaddrinfo(query.block.ar_result);
      return true;
    });
  }

  Mutex mutex_;
  std::list<Query> queries_ GUARDED_BY(mutex_);
};

Stragglers &stragglers() {
  // Never destroyed: the resolver's threads may outlive the end of main().
  static auto *all = new Stragglers();
  return *all;
}

AddressList ask_resolver(const std::string &host, const std::string &port, Nanos limit, int wake_fd,
                         int &error) {
  // First, because nothing may throw once the query is asked.
  Stragglers &late = stragglers();
  std::list<Query> query;
  query.emplace_back(host, port);
  gaicb *block = &query.front().block;
  error = getaddrinfo_a(GAI_NOWAIT, &block, 1, nullptr);
  if (error != 0) return nullptr;
  while ((error = gai_error(block)) == EAI_INPROGRESS) {
    pollfd wake{wake_fd, POLLIN, 0};
    const Nanos left = limit - boot_now();
    if (left <= 0 || poll(&wake, 1, 0) > 0) break;
    const timespec slice{0, static_cast<long>(std::min(left, 20 * kMs))};
    gai_suspend(&block, 1, &slice);
  }
  if (error == EAI_INPROGRESS && gai_cancel(block) == EAI_NOTCANCELED) {
    late.keep(query);
    return nullptr;
  }
  return AddressList(block->ar_result);
}

#else

AddressList ask_resolver(const std::string &host, const std::string &port, Nanos, int, int &error) {
  return look_up(host, port, 0, error);
}

#endif

}  // namespace

DialFailure resolve(const std::string &host, const std::string &port, Nanos limit, int wake_fd,
                    AddressList &addresses) {
  int error = 0;
  // Numeric addresses and localhost need no name server, and no time limit.
  addresses = look_up(host, port, host == "localhost" ? 0 : AI_NUMERICHOST, error);
  if (addresses) return {};
  if (error == EAI_NONAME && host != "localhost")
    addresses = ask_resolver(host, port, limit, wake_fd, error);
  if (addresses) return {};
  if (error == EAI_INPROGRESS) return {DialFailure::Kind::kNameLate, 0, {}};
  return {DialFailure::Kind::kNameUnknown, 0, gai_strerror(error)};
}

}  // namespace redlatch::net

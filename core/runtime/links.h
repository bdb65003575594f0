// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Links: the link to each server, by number of its node. A cluster may get further nodes at any
// time: a loop that may meet a new one counts by number.
#pragma once

#include <cassert>
#include <cstddef>
#include <deque>
#include <span>

#include "base/settings.h"
#include "base/thread_annotations.h"
#include "driver/log.h"
#include "runtime/link.h"
#include "runtime/runtime_mutex.h"

namespace redlatch::runtime {

class Links {
 public:
  Links(std::span<const Settings> nodes, driver::Log &log) : log_(log) {
    for (size_t i = 0; i < nodes.size(); i++) add(nodes[i], i);
  }

  // The settings outlive it.
  void add(const Settings &settings, size_t node) { links_.emplace_back(settings, node, log_); }
  size_t size() const { return links_.size(); }
  Link &operator[](size_t node) {
    assert(node < links_.size());
    return links_[node];
  }
  auto begin() { return links_.begin(); }
  auto end() { return links_.end(); }
  auto begin() const { return links_.begin(); }
  auto end() const { return links_.end(); }
  // The only one, or the first.
  Link &front() { return links_.front(); }
  const Link &front() const { return links_.front(); }

  // Cheap, because every call asks several times.
  bool is_usable() const REQUIRES(runtime_mutex) {
    for (const Link &link : links_) {
      if (link.is_usable()) return true;
    }
    return false;
  }
  bool is_broken() const REQUIRES(runtime_mutex) {
    for (const Link &link : links_) {
      if (link.connection.is_broken()) return true;
    }
    return false;
  }
  bool awaits_auth() const REQUIRES(runtime_mutex) {
    for (const Link &link : links_) {
      if (link.connection.awaits_auth()) return true;
    }
    return false;
  }
  bool has_unread_end() const REQUIRES(runtime_mutex) {
    for (const Link &link : links_) {
      if (link.is_end_unread) return true;
    }
    return false;
  }
  void drop_all() REQUIRES(runtime_mutex) {
    for (Link &link : links_) link.drop();
  }

 private:
  driver::Log &log_;
  std::deque<Link> links_;
};

}  // namespace redlatch::runtime

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// What the measuring programs share. Each takes `name=value` arguments, measures one topic against
// a server that run.py has started, and prints one JSON object. Whatever goes wrong ends the
// program: a benchmark with a failed call has no result.
#pragma once

#include <hiredis/hiredis.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "redlatch/redlatch.h"

namespace redlatch::bench {

using Nanos = int64_t;

inline constexpr Nanos kUs = 1'000;
inline constexpr Nanos kMs = 1'000'000;
inline constexpr Nanos kSecond = 1'000'000'000;

[[noreturn]] void die(const std::string &why);

// ---- time and cost -----------------------------------------------------------------------------

Nanos now();  // CLOCK_MONOTONIC: the same in all processes, and what Python's monotonic_ns() reads
void sleep_for(Nanos duration);

// What this process has used: all its threads, the kernel's work for them included.
struct Usage {
  double cpu_us = 0;
  double switch_count = 0;
  static Usage so_far();
  Usage since(const Usage &earlier) const;
};

// What this process has.
double count_threads();
double count_descriptors();
// What malloc has given out, its own headers included; after use_one_arena(), for it sees only one.
double bytes_in_use();
void use_one_arena();

// Durations in ns, sorted by the first question.
class Samples {
 public:
  void add(Nanos value) { values_.push_back(value); }
  void add_all(const Samples &others) {
    values_.insert(values_.end(), others.values_.begin(), others.values_.end());
  }
  void reserve(size_t count) { values_.reserve(count); }
  size_t size() const { return values_.size(); }
  double us(double quantile);

 private:
  std::vector<Nanos> values_;
  size_t sorted_count_ = 0;
};

// ---- arguments and results ---------------------------------------------------------------------

class Arguments {
 public:
  Arguments(int argc, char **argv);
  std::string text(const std::string &name) const;
  double number(const std::string &name) const;
  int count(const std::string &name) const { return static_cast<int>(number(name)); }
  int count(const std::string &name, int otherwise) const {
    return values_.count(name) == 0 ? otherwise : count(name);
  }
  Nanos duration(const std::string &name) const {  // given in seconds
    return static_cast<Nanos>(number(name) * 1e9);
  }

 private:
  std::map<std::string, std::string> values_;
};

// {"name": number, ...}, nested by add_row(): "rows": [{..}, ..].
class Result {
 public:
  Result &add(const std::string &name, double value);
  Result &add_row(const Result &row);
  void print() const;

 private:
  std::string text() const;
  std::string fields_;
  std::string rows_;
};

// ---- the floor: hiredis, blocking, one command at a time ----------------------------------------

using ReplyPtr = std::unique_ptr<redisReply, void (*)(void *)>;

// The bytes of one command. Floors send bytes made beforehand: nothing can be cheaper.
std::string command(std::initializer_list<std::string_view> words);

class Raw {
 public:
  explicit Raw(int port);
  ReplyPtr call(std::string_view bytes) {
    append(bytes);
    return receive();
  }
  void append(std::string_view bytes);
  ReplyPtr receive();
  std::string load(std::string_view script);  // its SHA1
  int major_version();

 private:
  std::unique_ptr<redisContext, void (*)(redisContext *)> context_;
};

void expect_integer(const redisReply &reply, long long value, const char *what);

// How often clients asked for something, and how many entries went into a queue: INFO
// commandstats. What scripts call is counted there as well, under names that no client sends.
struct ServerCounts {
  double scripts = 0;   // EVALSHA and EVAL
  double enqueues = 0;  // ZADD
  static ServerCounts so_far(Raw &raw);
};

// The library's own two scripts, called with arguments of the shape that core/protocol gives them.
class LockScripts {
 public:
  LockScripts(Raw &raw, const std::string &folder);
  struct Cycle {
    std::string acquire, release;
  };
  Cycle cycle_of(const std::string &name) const;
  static void run(Raw &raw, const Cycle &cycle);
  static void expect_acquired(const redisReply &reply);
  static void expect_released(const redisReply &reply);

 private:
  std::string acquire_, release_;
};

// What every lock on one server needs at least: SET NX PX, compare-and-delete.
class PlainLock {
 public:
  explicit PlainLock(Raw &raw);
  LockScripts::Cycle cycle_of(const std::string &name) const;
  static void run(Raw &raw, const LockScripts::Cycle &cycle);

 private:
  std::string release_;
};

// p50 in us of a PING, with a pause before each: a machine that dozed off answers later.
double ping_us(int port, int count, Nanos pause);

// ---- the library -------------------------------------------------------------------------------

template <auto Free>
struct Freed {
  template <class Handle>
  void operator()(Handle *handle) const {
    Free(handle);
  }
};
using ClientPtr = std::unique_ptr<rl_client, Freed<rl_client_close>>;
using LeasePtr = std::unique_ptr<rl_lease, Freed<rl_lease_free>>;
using RequestPtr = std::unique_ptr<rl_request, Freed<rl_request_free>>;
using QueuePtr = std::unique_ptr<rl_queue, Freed<rl_queue_free>>;
using OptionsPtr = std::unique_ptr<rl_acquire_options, Freed<rl_acquire_options_free>>;

ClientPtr open_client(int port);
OptionsPtr make_options(int64_t ttl_ms, int32_t max_local_handoffs);
OptionsPtr permit_of(int limit);  // of a semaphore; it asks for one
inline constexpr int64_t kWaitMs = 60'000;
LeasePtr acquire(const ClientPtr &client, std::string_view name, const OptionsPtr &options = {});
void release(LeasePtr lease);

// ---- processes ---------------------------------------------------------------------------------

// A zeroed T that forked processes share; never unmapped.
void *map_shared(size_t size);
template <class T>
T &make_shared_memory() {
  return *new (map_shared(sizeof(T))) T();
}

// A process of its own that runs `body` and ends; it must be the first to use the library there.
int spawn(const std::function<void()> &body);
void reap(int pid);

}  // namespace redlatch::bench

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "support.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace redlatch::bench {

namespace {

constexpr const char *kHost = "127.0.0.1";

// A token and its place in a queue have these widths: see core/protocol/token.h.
constexpr std::string_view kToken = "0123456789abcdefghijkl00000000ff";
constexpr std::string_view kPlaceOfToken = "x030009999999999999";

std::string text_of(const redisReply &reply) { return {reply.str, reply.len}; }

std::string read_file(const std::string &path) {
  std::ifstream file(path);
  if (!file) die("cannot read " + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

// Without exit handlers: other threads may be at work.
void die(const std::string &why) {
  std::fprintf(stderr, "bench: %s\n", why.c_str());
  std::fflush(stderr);
  _exit(1);
}

// ---- time and cost -----------------------------------------------------------------------------

Nanos now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

void sleep_for(Nanos duration) {
  if (duration <= 0) return;
  timespec left{duration / kSecond, duration % kSecond};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

Usage Usage::so_far() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto us = [](const timeval &t) {
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
  };
  return {us(used.ru_utime) + us(used.ru_stime),
          static_cast<double>(used.ru_nvcsw + used.ru_nivcsw)};
}

Usage Usage::since(const Usage &earlier) const {
  return {cpu_us - earlier.cpu_us, switch_count - earlier.switch_count};
}

namespace {

double count_entries(const char *folder) {
  namespace fs = std::filesystem;
  return static_cast<double>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

double count_threads() { return count_entries("/proc/self/task"); }

double count_descriptors() { return count_entries("/proc/self/fd"); }

void use_one_arena() { mallopt(M_ARENA_MAX, 1); }

double bytes_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

double Samples::us(double quantile) {
  if (values_.empty()) die("nothing was measured");
  if (sorted_count_ != values_.size()) std::sort(values_.begin(), values_.end());
  sorted_count_ = values_.size();
  const auto index = static_cast<size_t>(quantile * static_cast<double>(values_.size()));
  return static_cast<double>(values_[std::min(index, values_.size() - 1)]) / kUs;
}

// ---- arguments and results ---------------------------------------------------------------------

Arguments::Arguments(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const std::string word = argv[i];
    const size_t equals = word.find('=');
    if (equals == std::string::npos) die("not name=value: " + word);
    values_[word.substr(0, equals)] = word.substr(equals + 1);
  }
}

std::string Arguments::text(const std::string &name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) die("missing argument: " + name);
  return found->second;
}

double Arguments::number(const std::string &name) const {
  const std::string value = text(name);
  char *end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != '\0') die("not a number: " + name + "=" + value);
  return number;
}

Result &Result::add(const std::string &name, double value) {
  char number[64];
  std::snprintf(number, sizeof number, "%.17g", value);
  fields_ += (fields_.empty() ? "\"" : ", \"") + name + "\": " + number;
  return *this;
}

Result &Result::add_row(const Result &row) {
  rows_ += (rows_.empty() ? "" : ",\n ") + row.text();
  return *this;
}

std::string Result::text() const {
  if (rows_.empty()) return "{" + fields_ + "}";
  return "{" + fields_ + (fields_.empty() ? "" : ", ") + "\"rows\": [" + rows_ + "]}";
}

void Result::print() const {
  std::printf("%s\n", text().c_str());
  std::fflush(stdout);
}

// ---- the floor ---------------------------------------------------------------------------------

std::string command(std::initializer_list<std::string_view> words) {
  std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) {
    bytes += "$" + std::to_string(word.size()) + "\r\n";
    bytes.append(word).append("\r\n");
  }
  return bytes;
}

Raw::Raw(int port) : context_(redisConnect(kHost, port), redisFree) {
  if (!context_) die("out of memory");
  if (context_->err != 0) die(std::string("hiredis: ") + context_->errstr);
}

void Raw::append(std::string_view bytes) {
  if (redisAppendFormattedCommand(context_.get(), bytes.data(), bytes.size()) != REDIS_OK) {
    die(std::string("hiredis: ") + context_->errstr);
  }
}

ReplyPtr Raw::receive() {
  void *reply = nullptr;
  if (redisGetReply(context_.get(), &reply) != REDIS_OK) {
    die(std::string("hiredis: ") + context_->errstr);
  }
  ReplyPtr owned(static_cast<redisReply *>(reply), freeReplyObject);
  if (owned->type == REDIS_REPLY_ERROR) die("the server says: " + text_of(*owned));
  return owned;
}

std::string Raw::load(std::string_view script) {
  return text_of(*call(command({"SCRIPT", "LOAD", script})));
}

int Raw::major_version() {
  const std::string info = text_of(*call(command({"INFO", "server"})));
  // Valkey says 7.2.4 here, whatever its own version is.
  const size_t at = info.find("redis_version:");
  if (at == std::string::npos) die("INFO has no redis_version");
  return std::atoi(info.c_str() + at + std::strlen("redis_version:"));
}

void expect_integer(const redisReply &reply, long long value, const char *what) {
  if (reply.type == REDIS_REPLY_INTEGER && reply.integer == value) return;
  die(std::string(what) + ": unexpected reply");
}

ServerCounts ServerCounts::so_far(Raw &raw) {
  const std::string info = text_of(*raw.call(command({"INFO", "commandstats"})));
  const auto calls = [&info](const std::string &name) {
    const std::string start = "cmdstat_" + name + ":calls=";
    const size_t at = info.find(start);
    return at == std::string::npos ? 0.0 : std::atof(info.c_str() + at + start.size());
  };
  return {calls("evalsha") + calls("eval"), calls("zadd")};
}

LockScripts::LockScripts(Raw &raw, const std::string &folder) {
  const std::string suffix = raw.major_version() >= 7 ? ".sharded.lua" : ".lua";
  acquire_ = raw.load(read_file(folder + "/acquire" + suffix));
  release_ = raw.load(read_file(folder + "/release" + suffix));
}

LockScripts::Cycle LockScripts::cycle_of(const std::string &name) const {
  const std::string stem = "{" + name + "}:rl1:";
  const std::string queue = stem + "q";
  const std::string fence = stem + "f";
  const std::string readers = stem + "r";
  const std::string turn = stem + "w";
  const std::string member = std::string(kToken).append(kPlaceOfToken);
  return {command({"EVALSHA", acquire_, "5", name, queue, fence, readers, turn, kToken, "30000",
                   member, "", "rl1:"}),
          command({"EVALSHA", release_, "5", name, queue, fence, readers, turn, kToken,
                   "rl1:", "-1", "150", "1"})};
}

void LockScripts::expect_acquired(const redisReply &reply) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements != 3) die("acquire: unexpected reply");
  expect_integer(*reply.element[0], 1, "acquire");
}

void LockScripts::expect_released(const redisReply &reply) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements != 3) die("release: unexpected reply");
  expect_integer(*reply.element[0], 1, "release");
}

void LockScripts::run(Raw &raw, const Cycle &cycle) {
  expect_acquired(*raw.call(cycle.acquire));
  expect_released(*raw.call(cycle.release));
}

PlainLock::PlainLock(Raw &raw)
    : release_(raw.load("if redis.call('get',KEYS[1])==ARGV[1] then "
                        "return redis.call('del',KEYS[1]) else return 0 end")) {}

LockScripts::Cycle PlainLock::cycle_of(const std::string &name) const {
  return {command({"SET", name, kToken, "NX", "PX", "30000"}),
          command({"EVALSHA", release_, "1", name, kToken})};
}

void PlainLock::run(Raw &raw, const LockScripts::Cycle &cycle) {
  if (raw.call(cycle.acquire)->type != REDIS_REPLY_STATUS) die("SET NX: unexpected reply");
  expect_integer(*raw.call(cycle.release), 1, "compare-and-delete");
}

double ping_us(int port, int count, Nanos pause) {
  Raw raw(port);
  const std::string ping = command({"PING"});
  Samples samples;
  for (int i = 0; i < count; i++) {
    sleep_for(pause);
    const Nanos start = now();
    raw.call(ping);
    samples.add(now() - start);
  }
  return samples.us(0.5);
}

// ---- the library -------------------------------------------------------------------------------

namespace {

struct ErrorPtr : std::unique_ptr<rl_error, Freed<rl_error_free>> {
  ErrorPtr() : unique_ptr(rl_error_new()) {}
  std::string text() const {
    return std::string(rl_status_name(rl_error_status(get()))) + ": " + rl_error_message(get());
  }
};

// As a program would have it: one for each thread, used again and again.
const ErrorPtr &error_of_thread() {
  thread_local const ErrorPtr error;
  return error;
}

}  // namespace

ClientPtr open_client(int port) {
  const ErrorPtr &error = error_of_thread();
  const std::string url = std::string("redis://") + kHost + ":" + std::to_string(port);
  ClientPtr client(rl_client_open(url.data(), url.size(), nullptr, error.get()));
  if (!client || rl_client_connect(client.get(), 0, error.get()) != RL_OK) {
    die("cannot open a client: " + error.text());
  }
  return client;
}

OptionsPtr make_options(int64_t ttl_ms, int32_t max_local_handoffs) {
  OptionsPtr options(rl_acquire_options_new());
  if (!options || rl_acquire_options_set_ttl_ms(options.get(), ttl_ms) != RL_OK ||
      rl_acquire_options_set_max_local_handoffs(options.get(), max_local_handoffs) != RL_OK) {
    die("the options were refused");
  }
  return options;
}

OptionsPtr permit_of(int limit) {
  OptionsPtr options(rl_acquire_options_new());
  const std::string text = std::to_string(limit);
  if (!options || rl_acquire_options_set(options.get(), "limit", 5, text.data(), text.size(),
                                         nullptr) != RL_OK) {
    die("the limit was refused");
  }
  return options;
}

LeasePtr acquire(const ClientPtr &client, std::string_view name, const OptionsPtr &options) {
  const ErrorPtr &error = error_of_thread();
  LeasePtr lease(
      rl_acquire(client.get(), name.data(), name.size(), kWaitMs, options.get(), error.get()));
  if (!lease) die("acquire: " + error.text());
  return lease;
}

void release(LeasePtr lease) {
  const ErrorPtr &error = error_of_thread();
  if (rl_release(lease.get(), error.get()) != RL_OK) die("release: " + error.text());
}

// ---- processes ---------------------------------------------------------------------------------

void *map_shared(size_t size) {
  void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) die("no shared memory");
  return memory;
}

int spawn(const std::function<void()> &body) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) die("cannot fork");
  if (pid > 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  body();
  std::fflush(nullptr);
  _exit(0);
}

void reap(int pid) {
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) die("a process has gone");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) die("a process failed");
}

}  // namespace redlatch::bench

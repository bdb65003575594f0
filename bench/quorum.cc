// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// A lock on most of several servers, taken and given back by one thread.
//
//   ports pids       of the servers, with commas between; they are stopped, and some are killed
//   scripts          the folder of the composed scripts
//   rounds cycles    each round: fresh keys, so many cycles of each candidate
//   blocks           into which these are cut, taking turns
//   warmup           seconds before the first round
//   hung             so many servers hang for a part of each round
//   refusals         so many of each kind behind the rounds
//
// Prints for each round the p50 in us of each candidate, as `healthy_` and `hung_`; in a last row,
// if that is asked for, how long a refusal takes in ms when most of the servers hang, and are gone,
// and what is left.
//
// The floor, `raw`, sends both scripts to all servers from one loop, and goes on when most have
// answered, as the library does; `raw_all` when all have.
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <sstream>
#include <string>
#include <vector>

#include "support.h"

namespace redlatch::bench {

namespace {

using ClientOptionsPtr = std::unique_ptr<rl_client_options, Freed<rl_client_options_free>>;
using ErrorPtr = std::unique_ptr<rl_error, Freed<rl_error_free>>;

std::vector<int> numbers(const std::string &text) {
  std::vector<int> found;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) found.push_back(std::stoi(word));
  return found;
}

// ---- the floor ---------------------------------------------------------------------------------

// Connections to all servers, and one epoll loop.
class Fan {
 public:
  explicit Fan(const std::vector<int> &ports) : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    if (epoll_ < 0) die("no epoll");
    for (size_t i = 0; i < ports.size(); i++) add(ports[i], i);
  }
  Fan(const Fan &) = delete;
  Fan &operator=(const Fan &) = delete;
  ~Fan() {
    for (const Line &line : lines_) {
      close(line.socket);
      redisReaderFree(line.reader);
    }
    close(epoll_);
  }

  // Sends to all of them; returns when `needed` have answered this. Late answers to what was sent
  // before are read by the way.
  void call(const std::string &bytes, size_t needed, void (*check)(const redisReply &)) {
    for (Line &line : lines_) {
      const ssize_t sent = send(line.socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent != static_cast<ssize_t>(bytes.size())) die("a server takes no more");
      line.unanswered++;
    }
    size_t answered = 0;
    std::array<epoll_event, 16> events{};
    while (answered < needed) {
      const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 10'000);
      if (count <= 0) die("too few servers answer");
      for (int i = 0; i < count; i++) {
        answered += read(lines_[events[static_cast<size_t>(i)].data.u64], check);
      }
    }
  }

  size_t size() const { return lines_.size(); }

 private:
  struct Line {
    int socket = -1;
    redisReader *reader = nullptr;
    size_t unanswered = 0;
  };

  void add(int port, size_t index) {
    Line line{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), redisReaderCreate(), 0};
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    setsockopt(line.socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = index;
    if (connect(line.socket, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0 ||
        epoll_ctl(epoll_, EPOLL_CTL_ADD, line.socket, &event) != 0) {
      die("cannot connect");
    }
    lines_.push_back(line);
  }

  // Whether the last step was answered.
  size_t read(Line &line, void (*check)(const redisReply &)) {
    std::array<char, 4096> bytes;
    const ssize_t size = recv(line.socket, bytes.data(), bytes.size(), 0);
    if (size <= 0) die("a server is gone");
    redisReaderFeed(line.reader, bytes.data(), static_cast<size_t>(size));
    size_t is_answered = 0;
    void *reply = nullptr;
    while (redisReaderGetReply(line.reader, &reply) == REDIS_OK && reply != nullptr) {
      const ReplyPtr owned(static_cast<redisReply *>(reply), freeReplyObject);
      if (--line.unanswered > 0) continue;
      check(*owned);
      is_answered = 1;
    }
    return is_answered;
  }

  const int epoll_;
  std::vector<Line> lines_;
};

// ---- what is compared --------------------------------------------------------------------------

struct Candidate {
  std::string name;
  std::function<void()> cycle;
  Samples healthy, hung;
};

class Quorum {
 public:
  explicit Quorum(const Arguments &arguments)
      : ports_(numbers(arguments.text("ports"))),
        pids_(numbers(arguments.text("pids"))),
        hung_count_(static_cast<size_t>(arguments.count("hung"))),
        most_(ports_.size() / 2 + 1),
        fan_(ports_),
        all_(ports_),
        error_(rl_error_new()) {
    for (const int port : ports_) {
      watchers_.emplace_back(std::make_unique<Raw>(port));
      scripts_.emplace_back(*watchers_.back(), arguments.text("scripts"));
    }
    open();
  }

  void start_round(int number) {
    const std::string name = "quorum-" + std::to_string(number);
    candidates_.clear();
    add("raw", [this, cycle = scripts_[0].cycle_of(name + "r")] { run(fan_, cycle, most_); });
    add("raw_all", [this, cycle = scripts_[0].cycle_of(name + "a")] {
      run(all_, cycle, is_hung_ ? most_ : all_.size());
    });
    add("library", [this, name = name + "l"] { cycle(name); });
  }

  void run_block(int cycles, size_t first) {
    for (size_t i = 0; i < candidates_.size(); i++) {
      Candidate &candidate = candidates_[(first + i) % candidates_.size()];
      Samples &samples = is_hung_ ? candidate.hung : candidate.healthy;
      for (int k = 0; k < cycles; k++) {
        const Nanos start = now();
        candidate.cycle();
        samples.add(now() - start);
      }
    }
  }

  void hang(size_t count) {
    for (size_t i = 0; i < count; i++) kill(pids_[i], SIGSTOP);
    is_hung_ = true;
  }

  // Returns when they have done what has come meanwhile.
  void go_on() {
    for (const int pid : pids_) kill(pid, SIGCONT);
    for (const auto &watcher : watchers_) watcher->call(ping_);
    is_hung_ = false;
  }

  Result take_round() {
    Result row;
    for (Candidate &candidate : candidates_) {
      row.add("healthy_" + candidate.name + "_us", candidate.healthy.us(0.5));
      row.add("hung_" + candidate.name + "_us", candidate.hung.us(0.5));
      row.add("healthy_" + candidate.name + "_p99_us", candidate.healthy.us(0.99));
    }
    return row;
  }

  size_t hung_count() const { return hung_count_; }

  // How long a refusal takes when most of them hang, in ms; what is left when they go on.
  void refuse_hung(Result &result, int times) {
    Samples samples;
    double left = 0;
    for (int i = 0; i < times; i++) {
      const std::string name = "refused-" + std::to_string(i);
      hang(most_);
      samples.add(refused(name));
      go_on();
      left += left_behind(name, 0);
    }
    result.add("hung_refused_ms", samples.us(0.5) / 1000);
    result.add("hung_refused_most_ms", samples.us(1) / 1000).add("hung_left", left);
  }

  void refuse_killed(Result &result, int times) {
    for (size_t i = 0; i < most_; i++) kill(pids_[i], SIGKILL);
    sleep_for(kSecond / 5);
    Samples samples;
    double left = 0;
    for (int i = 0; i < times; i++) {
      const std::string name = "down-" + std::to_string(i);
      samples.add(refused(name));
      left += left_behind(name, most_);
    }
    result.add("down_refused_ms", samples.us(0.5) / 1000);
    result.add("down_refused_most_ms", samples.us(1) / 1000).add("down_left", left);
  }

 private:
  void open() {
    std::string urls;
    for (const int port : ports_) urls += "redis://127.0.0.1:" + std::to_string(port) + " ";
    const ClientOptionsPtr options(rl_client_options_new());
    // The servers are young, and forget nothing here.
    const std::string_view name = "restart_guard", value = "off";
    if (rl_client_options_set(options.get(), name.data(), name.size(), value.data(), value.size(),
                              error_.get()) != RL_OK) {
      die(rl_error_message(error_.get()));
    }
    redlock_.reset(rl_redlock_open(urls.data(), urls.size(), options.get(), error_.get()));
    if (!redlock_ || rl_client_connect(redlock_.get(), 5000, error_.get()) != RL_OK) {
      die(std::string("cannot open: ") + rl_error_message(error_.get()));
    }
  }

  void add(const std::string &name, std::function<void()> cycle) {
    candidates_.push_back({name, std::move(cycle), {}, {}});
  }

  static void run(Fan &fan, const LockScripts::Cycle &cycle, size_t needed) {
    fan.call(cycle.acquire, needed, LockScripts::expect_acquired);
    fan.call(cycle.release, needed, LockScripts::expect_released);
  }

  void cycle(const std::string &name) {
    LeasePtr lease(
        rl_acquire(redlock_.get(), name.data(), name.size(), kWaitMs, nullptr, error_.get()));
    if (!lease) die(std::string("acquire: ") + rl_error_message(error_.get()));
    if (rl_release(lease.get(), error_.get()) != RL_OK) {
      die(std::string("release: ") + rl_error_message(error_.get()));
    }
  }

  Nanos refused(const std::string &name) {
    const Nanos start = now();
    const LeasePtr lease(
        rl_acquire(redlock_.get(), name.data(), name.size(), 0, nullptr, error_.get()));
    const Nanos end = now();
    if (lease) die("granted by a minority");
    return end - start;
  }

  // Keys on the servers from `first` on, once there was time to give them back.
  double left_behind(const std::string &name, size_t first) {
    const std::string exists = command({"EXISTS", name});
    double found = 0;
    const Nanos end = now() + kSecond;
    do {
      found = 0;
      for (size_t i = first; i < watchers_.size(); i++) {
        found += static_cast<double>(watchers_[i]->call(exists)->integer);
      }
    } while (found > 0 && now() < end);
    return found;
  }

  const std::vector<int> ports_, pids_;
  const size_t hung_count_, most_;
  Fan fan_, all_;
  const ErrorPtr error_;
  std::vector<std::unique_ptr<Raw>> watchers_;
  std::vector<LockScripts> scripts_;
  ClientPtr redlock_;
  std::vector<Candidate> candidates_;
  bool is_hung_ = false;
  const std::string ping_ = command({"PING"});
};

void measure(const Arguments &arguments) {
  Quorum quorum(arguments);
  const int blocks = arguments.count("blocks");
  const int cycles = arguments.count("cycles") / blocks;
  quorum.start_round(0);
  const Nanos warm_at = now() + arguments.duration("warmup");
  while (now() < warm_at) quorum.run_block(100, 0);
  Result result;
  for (int round = 1; round <= arguments.count("rounds"); round++) {
    quorum.start_round(round);
    for (int i = 0; i < blocks; i++) {
      quorum.run_block(cycles, static_cast<size_t>(i));
      quorum.hang(quorum.hung_count());
      quorum.run_block(cycles, static_cast<size_t>(i));
      quorum.go_on();
    }
    result.add_row(quorum.take_round());
  }
  if (const int times = arguments.count("refusals"); times > 0) {
    Result refusals;
    quorum.refuse_hung(refusals, times);
    quorum.refuse_killed(refusals, times);
    result.add_row(refusals);
  }
  result.print();
}

}  // namespace

}  // namespace redlatch::bench

int main(int argc, char **argv) {
  redlatch::bench::measure(redlatch::bench::Arguments(argc, argv));
  return 0;
}

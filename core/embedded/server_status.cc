// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "embedded/server_status.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "embedded/server_dir.h"
#include "net/connection.h"
#include "protocol/keys.h"
#include "resp/command_writer.h"

namespace redlatch::embedded {

namespace {

constexpr std::string_view kBatch = "500";  // keys of one SCAN, well below kMaxReplyElements

class Counter {
 public:
  Counter(const Settings &settings, Nanos limit, ServerStatus &status)
      : settings_(settings), limit_(limit), status_(status) {}

  Outcome count(int64_t most);

 private:
  Outcome ask(std::initializer_list<std::string_view> words);
  void read_info(std::string_view info);
  Outcome count_in(const std::string &database, int64_t most);

  const Settings &settings_;
  const Nanos limit_;
  ServerStatus &status_;
  net::Connection connection_;
  std::vector<resp::ReplyPtr> replies_;
  std::vector<std::string> databases_;
};

Outcome Counter::ask(std::initializer_list<std::string_view> words) {
  std::string bytes;
  resp::append_command(bytes, {words.begin(), words.size()});
  auto outcome = connection_.ask(bytes, limit_, replies_);
  if (!outcome.ok() || !replies_[0]->is_error()) return outcome;
  return failure(Status::kServer, settings_.address() + " refused " + std::string(*words.begin()) +
                                      ": " + std::string(replies_[0]->text()));
}

// Lines of `name:value`; those of the databases that hold keys begin with their number.
void Counter::read_info(std::string_view info) {
  while (!info.empty()) {
    const size_t end = info.find("\r\n");
    const std::string_view line = info.substr(0, end);
    info.remove_prefix(end == std::string_view::npos ? info.size() : end + 2);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = line.substr(colon + 1);
    int64_t number = 0;
    const bool is_number = parse_number(value, number);
    if (name == "process_id" && is_number) status_.pid = number;
    if (name == "connected_clients" && is_number) {
      status_.client_count = std::max<int64_t>(number, 1) - 1;
    }
    // Valkey sends both; redis_version is for programs that know only Redis.
    if (name == "redis_version" && status_.version.empty()) {
      status_.version = "Redis " + std::string(value);
    }
    if (name == "valkey_version") status_.version = "Valkey " + std::string(value);
    if (name.starts_with("db") && parse_number(name.substr(2), number)) {
      databases_.emplace_back(name.substr(2));
    }
  }
}

Outcome Counter::count_in(const std::string &database, int64_t most) {
  if (auto outcome = ask({"SELECT", database}); !outcome.ok()) return outcome;
  std::string cursor = "0";
  do {
    if (auto outcome = ask({"SCAN", cursor, "COUNT", kBatch}); !outcome.ok()) return outcome;
    const Reply &page = *replies_[0];
    if (page.count() != 2) return failure(Status::kServer, "unexpected reply to SCAN");
    cursor = page.at(0).text();
    for (size_t i = 0; i < page.at(1).count(); i++) {
      const std::string_view key = page.at(1).at(i).text();
      if (!protocol::is_auxiliary(key) && !protocol::is_client_name(key)) status_.lock_count++;
    }
  } while (cursor != "0" && status_.lock_count < most);
  return {};
}

Outcome Counter::count(int64_t most) {
  auto outcome = connection_.dial(settings_, limit_, -1);
  if (!outcome.ok()) return connection_.is_nobody_there() ? Outcome{} : outcome;
  if (outcome = ask({"INFO"}); !outcome.ok()) return outcome;
  read_info(replies_[0]->text());
  for (const std::string &database : databases_) {
    if (status_.lock_count >= most) break;
    if (outcome = count_in(database, most); !outcome.ok()) return outcome;
  }
  return {};
}

}  // namespace

Outcome read_status(const Settings &settings, Nanos limit, ServerStatus &status) {
  status.folder = settings.folder;
  ServerDir dir;
  bool is_there = false;
  auto outcome = ServerDir::look(settings.folder, dir, is_there);
  if (!outcome.ok() || !is_there) return outcome;
  return Counter(settings, limit, status).count(kMaxCounted);
}

Outcome read_activity(const Settings &settings, Nanos limit, ServerStatus &status) {
  return Counter(settings, limit, status).count(1);
}

}  // namespace redlatch::embedded

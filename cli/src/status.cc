// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// `status` and `ls`.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "command_client.h"
#include "commands.h"
#include "exit_code.h"
#include "json.h"
#include "lock_report.h"
#include "quorum_report.h"
#include "text.h"

namespace redlatch::cli {
namespace {

// Names are aligned to the left, columns from here on to the right.
constexpr std::size_t kFirstNumber = 3;

std::string padding(std::size_t width, const std::string& text) {
  return std::string(width - std::min(width, column_count(text)), ' ');
}

std::string table_of(const std::vector<LockRow>& rows, bool is_colored) {
  LockRow head;
  std::copy(kLockColumns.begin(), kLockColumns.end(), head.begin());
  std::array<std::size_t, kLockColumns.size()> widths{};
  const auto line_of = [&widths](const LockRow& row) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space = padding(widths[i], row[i]);
      line += (i == 0 ? "" : "  ") + (i < kFirstNumber ? row[i] + space : space + row[i]);
    }
    return line;
  };
  for (std::size_t i = 0; i < head.size(); ++i) {
    widths[i] = column_count(head[i]);
    for (const LockRow& row : rows) widths[i] = std::max(widths[i], column_count(row[i]));
  }
  std::string out = bold(line_of(head), is_colored) + "\n";
  for (const LockRow& row : rows) out += line_of(row) + "\n";
  return out;
}

// Collects the locks for formats that need all of them; writes the other formats at once.
class Writer {
 public:
  Writer(const CommandClient& client, const Arguments& arguments)
      : arguments_(arguments), server_(client.server()) {}

  void add(const LockReport& report) {
    ++count_;
    switch (arguments_.output) {
      case Output::kTable:
        rows_.push_back(report_row(report));
        break;
      case Output::kJson:
        objects_.emplace(report.name, report_json(report, server_));
        break;
      case Output::kJsonLines:
        write_output(report_json(report, server_) + "\n");
        break;
      case Output::kTsv:
        write_output(report_tsv(report));
        break;
    }
  }

  void finish() {
    if (arguments_.output == Output::kTable && count_ > 0) {
      std::sort(rows_.begin(), rows_.end());
      write_output(table_of(rows_, arguments_.is_colored));
    } else if (arguments_.output == Output::kJson) {
      JsonObject object;
      object.number("schema", 1).text("server", server_);
      object.raw("locks", json_array(objects_, [](const auto& item) { return item.second; }));
      write_output(object.done() + "\n");
    }
  }

  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  const Arguments& arguments_;
  const std::string server_;
  std::size_t count_ = 0;
  std::vector<LockRow> rows_;
  std::map<std::string, std::string> objects_;  // By name.
};

int show_quorum(const Arguments& arguments, const Log& log) {
  const QuorumView view(arguments);
  int exit_code = kExitHeld;
  for (const std::string& name : arguments.names) {
    const QuorumReport report = view.report_on(name);
    write_output(arguments.output == Output::kTable ? quorum_table(report, arguments.is_colored)
                 : arguments.output == Output::kTsv ? quorum_tsv(report)
                                                    : quorum_json(report) + "\n");
    if (report.state() == QuorumReport::State::kUnknown) {
      log.say("too few servers could be asked about " + lock_words(name) + ": " +
              std::to_string(report.reached_count()) + " of " +
              std::to_string(report.nodes.size()) + ". Check --url / REDLATCH_URL");
      exit_code = kExitUnavailable;
    } else if (report.state() != QuorumReport::State::kHeld && exit_code == kExitHeld) {
      exit_code = kExitFree;
    }
  }
  return exit_code;
}

int exit_code_of(const LockReport& report) {
  if (report.state == RL_STATE_NO_LOCK) return kExitConfig;
  return report.is_free() ? kExitFree : kExitHeld;
}

// Why one lock cannot be shown: the others follow. Throws Failure if it is not about one.
Failure failure_of_one(const CommandClient& client) {
  Failure failure = client.failure();
  if (rl_error_status(client.error()) != RL_E_WRONG_TYPE) throw failure;
  return failure;
}

int show_one(const Arguments& arguments, const Log& log) {
  const CommandClient client(arguments);
  int exit_code = kExitHeld;
  for (const std::string& name : arguments.names) {
    const InfoHandle info = client.try_inspect(name);
    if (!info) {
      const Failure failure = failure_of_one(client);
      log.say(failure.text);
      exit_code = std::max(exit_code, failure.exit_code);
      continue;
    }
    const LockReport report(info.get());
    if (arguments.output == Output::kTable) {
      write_output(report_table(report, arguments.is_colored));
      if (client.is_local()) {
        write_output("  server    " + client.server() + " (this host only)\n");
      }
      if (const auto reason = client.why_polling(); !reason.empty()) {
        write_output("  waiting   by polling: " + escaped(reason) + "\n");
      }
    } else if (arguments.output == Output::kTsv) {
      write_output(report_tsv(report));
    } else {
      write_output(report_json(report, client.server()) + "\n");
    }
    if (report.state == RL_STATE_NO_LOCK) {
      log.say("the key of " + lock_words(name) + " is of the type " + escaped(report.type) +
              " and no lock" + kOtherName);
    }
    if (report.is_free() && name.find('*') != std::string::npos) {
      log.say(lock_words(name) + " is one name; 'redlatch ls PATTERN' lists the held locks");
    }
    exit_code = std::max(exit_code, exit_code_of(report));
  }
  return exit_code;
}

}  // namespace

int show_status(const Arguments& arguments, const Log& log) {
  return server_urls(arguments).size() > 1 ? show_quorum(arguments, log) : show_one(arguments, log);
}

int list_locks(const Arguments& arguments, const Log& log) {
  const CommandClient client = CommandClient::of_one(arguments, "ls");
  const std::string pattern = arguments.names.empty() ? "" : arguments.names.front();
  const ListHandle list(
      rl_list_open(client.handle(), pattern.data(), pattern.size(), client.error()));
  if (!list) throw client.failure();
  Writer writer(client, arguments);
  int exit_code = 0;
  rl_status status = RL_OK;
  while ((status = rl_list_next(list.get(), client.error())) != RL_END) {
    if (status == RL_OK) {
      writer.add(LockReport(rl_list_info(list.get())));
    } else {
      const Failure failure = failure_of_one(client);
      log.say(failure.text);
      exit_code = failure.exit_code;
    }
  }
  writer.finish();
  if (arguments.output == Output::kTable && writer.count() == 0 && exit_code == 0)
    log.say("no lock is held");
  if (exit_code != 0) return exit_code;
  return arguments.tells_by_exit_code && writer.count() == 0 ? kExitNoneFound : 0;
}

}  // namespace redlatch::cli

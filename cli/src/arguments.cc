// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "duration.h"
#include "exit_code.h"
#include "text.h"

namespace redlatch::cli {
namespace {

constexpr std::int64_t kDefaultKillAfterMs = 5000;

struct Command {
  const char* name;
  const char* operands;
  const char* summary;
};

constexpr std::array<Command, 6> kCommands = {{
    {"run", "NAME [--] COMMAND [ARGUMENT..]", "Hold the lock NAME while COMMAND runs"},
    {"status", "NAME..", "Show locks; exit code 0 = all are held, 1 = one is free"},
    {"force-release", "NAME..", "Remove locks, whoever holds them"},
    {"server", "", "Show or keep the embedded server; exit code 0 = it runs, 1 = it does not"},
    {"version", "", "Print the version"},
    {"help", "[COMMAND]", "Print this help, or that of a command"},
}};

constexpr const char* kExitCodes =
    "Exit codes: that of COMMAND, 128+n if signal n ended it or the wait; 64 usage,\n"
    "69 server not reachable, 70 a bug, 75 not acquired (see -E), 77 access refused,\n"
    "78 server or configuration does not fit, 79 the lock was lost while COMMAND ran,\n"
    "126 COMMAND cannot be executed, 127 it was not found.\n"
    "\n"
    "COMMAND finds REDLATCH_LOCK, REDLATCH_FENCE, REDLATCH_TTL_MS, REDLATCH_HOLDER,\n"
    "REDLATCH_MODE and REDLATCH_PID in its environment.\n"
    "\n"
    "DUR is a number with a unit: 500ms, 30s, 2m, 1h; without a unit, seconds.";

// What CLI11 fills in, as it was typed.
struct RawOptions {
  bool is_help = false;
  bool is_version = false;
  bool is_nonblock = false;
  std::optional<std::string> wait;
  std::optional<std::string> ttl;
  std::optional<std::string> kill_after;
  int conflict_exit_code = kExitNotAcquired;
  std::string output = "table";
  bool is_json = false;
};

class UsageFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string /*name*/) const override {
    const auto is_it = [app](const Command& command) { return app->get_name() == command.name; };
    const auto* command = std::find_if(kCommands.begin(), kCommands.end(), is_it);
    if (command == kCommands.end()) return "Usage: redlatch [OPTION..] COMMAND ..\n";
    std::string line = std::string("Usage: redlatch ") + command->name + " [OPTION..]";
    if (*command->operands != '\0') line += std::string(" ") + command->operands;
    return line + "\n";
  }

  // Without CLI11's remarks on ranges and exclusions: the descriptions say it.
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string value = option->get_type_size() == 0 ? "" : option->get_type_name();
    return value.empty() ? "" : " " + value.substr(0, value.find(':'));
  }
};

class Parser {
 public:
  explicit Parser(Arguments& arguments) : arguments_(arguments) {
    const auto formatter = std::make_shared<UsageFormatter>();
    formatter->column_width(32);
    root_.formatter(formatter);
    root_.set_help_flag();
    root_.fallthrough();
    for (const Command& command : kCommands) {
      root_.add_subcommand(command.name, command.summary)->group("Commands");
    }
    add_global_options();
    add_run_options(*root_.get_subcommand("run"));
    root_.get_subcommand("status")
        ->add_option("-o,--output", raw_.output, "table or json (table)")
        ->check(CLI::IsMember({"table", "json"}))
        ->type_name("FORMAT");
    add_force_release_options(*root_.get_subcommand("force-release"));
    add_server_options(*root_.get_subcommand("server"));
    root_.get_subcommand("version")->add_flag("--json", raw_.is_json, "As one JSON object");
  }

  void parse(const std::vector<std::string>& words) {
    split(words);
    std::vector<std::string> reversed(head_.rbegin(), head_.rend());
    try {
      root_.parse(reversed);
    } catch (const CLI::ParseError& error) {
      throw UsageError(escaped(error.what()) + hint());
    }
    if (raw_.is_help || raw_.is_version || arguments_.command == "help") {
      arguments_.text = raw_.is_version ? version_text() : help_text();
      arguments_.command = "print";
      return;
    }
    check();
  }

 private:
  void add_global_options() {
    root_.add_flag("-h,--help", raw_.is_help, "Print help");
    root_.footer("What stands in parentheses is the default, or the variable that is read.");
    root_.add_flag("--version", raw_.is_version, "Print the version");
    auto* url = root_.add_option("-u,--url", arguments_.url,
                                 "redis://HOST:PORT/DB, unix:///PATH or embedded://[/FOLDER] "
                                 "(REDLATCH_URL, VALKEY_URL, REDIS_URL)");
    url->type_name("URL");
    root_
        .add_flag("--local", arguments_.is_local,
                  "A server of this host, started when needed: locks for this host only")
        ->excludes(url);
    root_
        .add_option("--namespace", arguments_.name_space,
                    "Prefix of every key (REDLATCH_NAMESPACE)")
        ->type_name("TEXT");
    root_.add_option("--user", arguments_.user, "User for AUTH")->type_name("NAME");
    root_
        .add_option("--password-file", arguments_.password_file,
                    "Its first line is the password "
                    "(REDLATCH_PASSWORD_FILE, REDISCLI_AUTH)")
        ->type_name("FILE");
    root_.add_flag("-q,--quiet", arguments_.is_quiet, "Say nothing, but how a call is wrong");
    root_.add_flag("-v,--verbose", arguments_.is_verbose, "Say also what goes well");
  }

  void add_run_options(CLI::App& run) {
    auto* nonblock = run.add_flag("-n,--nonblock", raw_.is_nonblock, "Try once, do not wait");
    run.add_option("-w,--wait", raw_.wait, "Wait at most this long (no limit); not with -n")
        ->type_name("DUR")
        ->excludes(nonblock);
    run.add_option("-E,--conflict-exit-code", raw_.conflict_exit_code,
                   "Exit code when the lock was not acquired (75)")
        ->check(CLI::Range(0, 255))
        ->type_name("N");
    run.add_option("--ttl", raw_.ttl, "Lease, renewed while COMMAND runs (30s)")->type_name("DUR");
    run.add_option("-k,--kill-after", raw_.kill_after,
                   "From SIGTERM to SIGKILL on loss (5s, at most ttl/3)")
        ->type_name("DUR");
    run.footer(kExitCodes);
  }

  void add_force_release_options(CLI::App& command) {
    command.add_flag("-y,--yes", arguments_.is_confirmed, "Do not ask");
    command
        .add_option("--if-owner", arguments_.if_owner,
                    "Only if this token holds it (`status` shows it)")
        ->type_name("TOKEN");
  }

  void add_server_options(CLI::App& command) {
    command.add_flag("--run", arguments_.stays, "Start it, and keep it until a signal comes");
    command.add_option("-o,--output", raw_.output, "table or json (table)")
        ->check(CLI::IsMember({"table", "json"}))
        ->type_name("FORMAT");
  }

  // Sorts the words into options for CLI11 (`head_`), operands and the child's words.
  void split(const std::vector<std::string>& words) {
    words_ = words;
    const CLI::App* command = nullptr;
    bool is_raw = false;
    while (position_ < words_.size()) {
      const std::string& word = words_[position_];
      const bool is_option = !is_raw && word.size() > 1 && word[0] == '-';
      if (is_option && word == "--") {
        is_raw = true;
        ++position_;
      } else if (is_option) {
        take_option(command);
      } else if (command == nullptr) {
        command = take_command();
      } else {
        arguments_.names.push_back(word);
        ++position_;
      }
      // Behind the name everything is the child's from the first word on that is no option.
      if (arguments_.command == "run" && arguments_.names.size() == 1 && starts_child(is_raw)) {
        take_child();
      }
    }
  }

  [[nodiscard]] bool starts_child(bool is_raw) const {
    if (position_ >= words_.size()) return false;
    const std::string& next = words_[position_];
    return is_raw || next == "--" || next.size() < 2 || next[0] != '-';
  }

  void take_child() {
    if (words_[position_] == "--") ++position_;
    arguments_.child_words.assign(words_.begin() + static_cast<std::ptrdiff_t>(position_),
                                  words_.end());
    position_ = words_.size();
  }

  [[nodiscard]] const CLI::App* find_command(const std::string& name) const {
    for (const CLI::App* command : root_.get_subcommands({})) {
      if (command->get_name() == name) return command;
    }
    return nullptr;
  }

  const CLI::App* take_command() {
    const std::string& word = words_[position_++];
    const CLI::App* command = find_command(word);
    if (command == nullptr) throw UsageError(unknown("command", word, command_names()));
    arguments_.command = word;
    head_.insert(head_.begin(), word);
    return command;
  }

  void take_option(const CLI::App* command) {
    const std::string word = words_[position_++];
    head_.push_back(word);
    const bool is_long = word[1] == '-';
    const std::size_t equals = word.find('=');
    if (is_long) {
      const std::string name = word.substr(0, equals);
      if (takes_value(command, name) && equals == std::string::npos) take_value(name);
      return;
    }
    for (std::size_t i = 1; i < word.size(); ++i) {
      const std::string name = {'-', word[i]};
      if (!takes_value(command, name)) continue;
      if (i + 1 == word.size()) take_value(name);
      return;
    }
  }

  void take_value(const std::string& name) {
    if (position_ == words_.size()) throw UsageError(name + " needs a value" + hint());
    head_.push_back(words_[position_++]);
  }

  bool takes_value(const CLI::App* command, const std::string& name) {
    const CLI::Option* option = command == nullptr ? nullptr : command->get_option_no_throw(name);
    if (option == nullptr) option = root_.get_option_no_throw(name);
    if (option == nullptr) throw UsageError(unknown("option", name, option_names(command)));
    return option->get_items_expected_max() > 0;
  }

  [[nodiscard]] std::string unknown(const std::string& kind, const std::string& word,
                                    const std::vector<std::string>& known) const {
    std::string text = "unknown " + kind + " " + in_quotes(word);
    const std::string near = nearest(word, known);
    if (!near.empty()) text += ", did you mean '" + near + "'?";
    return text + hint();
  }

  [[nodiscard]] std::string hint() const {
    const std::string& command = arguments_.command;
    return "\nredlatch: see 'redlatch help" + (command.empty() ? "" : " " + command) + "'";
  }

  [[nodiscard]] static std::vector<std::string> command_names() {
    std::vector<std::string> names;
    names.reserve(kCommands.size());
    for (const Command& command : kCommands) names.emplace_back(command.name);
    return names;
  }

  [[nodiscard]] std::vector<std::string> option_names(const CLI::App* command) const {
    std::vector<std::string> names;
    for (const CLI::App* app : {command, static_cast<const CLI::App*>(&root_)}) {
      if (app == nullptr) continue;
      for (const CLI::Option* option : app->get_options()) {
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
      }
    }
    return names;
  }

  static std::string version_text() { return std::string("redlatch ") + rl_version() + "\n"; }

  std::string help_text() {
    std::string topic = arguments_.command;
    if (topic == "help" && !raw_.is_help) {
      topic = arguments_.names.empty() ? "" : arguments_.names.front();
    }
    const auto help_of = [this](const CLI::App* app) {
      return root_.get_formatter()->make_help(app, "", CLI::AppFormatMode::Normal);
    };
    if (topic.empty()) return help_of(&root_);
    const CLI::App* command = find_command(topic);
    if (command == nullptr) throw UsageError(unknown("command", topic, command_names()));
    return help_of(command) + "Options of every command (--url ..): see 'redlatch help'.\n";
  }

  static std::int64_t duration(const std::string& option, const std::string& text) {
    const std::optional<std::int64_t> ms = parse_duration_ms(text);
    if (ms) return *ms;
    throw UsageError(option + ": " + in_quotes(text) +
                     " is no duration: a number with ms, s, m, h or d, such as 500ms, 30s or 2m");
  }

  void check() {
    const std::string& command = arguments_.command;
    if (command.empty()) throw UsageError("a command is missing" + hint());
    if (command == "run") {
      check_run();
    } else if (command == "version" || command == "server") {
      if (!arguments_.names.empty()) {
        throw UsageError("unexpected " + in_quotes(arguments_.names.front()) + hint());
      }
    } else if (arguments_.names.empty()) {
      throw UsageError("the NAME of a lock is missing" + hint());
    }
    if (arguments_.if_owner && arguments_.names.size() > 1) {
      throw UsageError("--if-owner goes with one NAME: a token holds one lock only");
    }
    arguments_.is_json = raw_.is_json || raw_.output == "json";
  }

  void check_run() {
    if (arguments_.names.empty()) {
      throw UsageError("the NAME of the lock is missing" + hint());
    }
    if (arguments_.child_words.empty()) {
      throw UsageError("the command to run under lock " + in_quotes(arguments_.names.front()) +
                       " is missing" + hint());
    }
    arguments_.conflict_exit_code = raw_.conflict_exit_code;
    if (raw_.is_nonblock) arguments_.wait_ms = 0;
    if (raw_.wait) arguments_.wait_ms = duration("--wait", *raw_.wait);
    if (raw_.ttl) arguments_.lease_ms = duration("--ttl", *raw_.ttl);
    if (arguments_.lease_ms < RL_MIN_LEASE_MS || arguments_.lease_ms > RL_MAX_LEASE_MS) {
      throw UsageError("--ttl: " + in_quotes(raw_.ttl.value_or("")) + " is not from 10ms to 7d");
    }
    const std::int64_t longest_ms = arguments_.lease_ms / 3;
    arguments_.kill_after_ms = std::min(kDefaultKillAfterMs, longest_ms);
    if (!raw_.kill_after) return;
    arguments_.kill_after_ms = duration("--kill-after", *raw_.kill_after);
    if (arguments_.kill_after_ms > longest_ms) {
      throw UsageError("--kill-after: " + in_quotes(*raw_.kill_after) +
                       " is more than a third of the " + seconds_text(arguments_.lease_ms) +
                       " of --ttl");
    }
  }

  Arguments& arguments_;
  RawOptions raw_;
  CLI::App root_{"A lock that many hosts share, over Redis or Valkey.", "redlatch"};
  std::vector<std::string> words_;
  std::size_t position_ = 0;
  std::vector<std::string> head_;
};

}  // namespace

Arguments parse_arguments(const std::vector<std::string>& words) {
  Arguments arguments;
  Parser(arguments).parse(words);
  return arguments;
}

}  // namespace redlatch::cli

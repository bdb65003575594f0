// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "arguments.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <memory>

#include "duration.h"
#include "elect_options.h"
#include "exit_code.h"
#include "guesses.h"
#include "json.h"
#include "recall_options.h"
#include "text.h"

namespace redlatch::cli {
namespace {

struct Command {
  const char* name;
  const char* operands;
  const char* summary;
};

constexpr std::array<Command, 13> kCommands = {{
    {"run", "NAME [--] COMMAND [ARGUMENT..]", "Hold the lock NAME while COMMAND runs"},
    {"once", "--every DUR NAME [--] COMMAND [ARGUMENT..]",
     "Run COMMAND once in a period, on one of the hosts that start it"},
    {"elect", "NAME [--] COMMAND [ARGUMENT..]",
     "Run COMMAND on one of the hosts that start it; another one takes over"},
    {"leader", "NAME", "Show who leads an election; exit code 1 = there is no leader"},
    {"status", "NAME..", "Show locks; exit code 0 = all are held, 1 = one is free"},
    {"ls", "[PATTERN]", "List the held locks except reentrant ones; PATTERN has * ? [a-z]"},
    {"force-release", "NAME..", "Remove locks of any holder"},
    {"recall", "NAME", "Ask the holders of a lock to finish; nothing is forced"},
    {"limit", "NAME [N]",
     "Cap a semaphore at N permits, or show its cap; exit code 1 = it has none"},
    {"doctor", "", "Check the servers; exit code 0 = all is well, 1 = warnings, 2 = failures"},
    {"server", "", "Show or keep the embedded server; exit code 0 = it runs, 1 = it does not"},
    {"version", "", "Print the version"},
    {"help", "[COMMAND]", "Print this help, or the help of a command"},
}};

constexpr const char* kExitCodes =
    "Exit codes: that of COMMAND, 128+n if signal n ended it or the wait; 64 usage,\n"
    "69 server not reachable, 70 a bug, 71 no memory, thread or process left,\n"
    "75 not acquired (see -E), 77 access refused, 78 server or configuration not\n"
    "supported, 79 the lock was lost while COMMAND ran, 126 COMMAND cannot be\n"
    "executed, 127 COMMAND was not found.\n"
    "\n"
    "COMMAND finds REDLATCH_LOCK, REDLATCH_FENCE, REDLATCH_FENCES, REDLATCH_TTL_MS,\n"
    "REDLATCH_HOLDER, REDLATCH_MODE, REDLATCH_PID and REDLATCH_RUNS in its environment.\n"
    "\n"
    "DUR is a number with a unit: 500ms, 30s, 2m, 1h; without a unit, seconds.";

// In front of the exit codes.
constexpr const char* kElection =
    "A lost term ends COMMAND as 'run' does. Then 'elect' stands by again, and does not\n"
    "exit with 79. COMMAND finds REDLATCH_ID, too. Nothing stops COMMAND while redlatch\n"
    "alone is stopped, as by SIGSTOP: pass REDLATCH_FENCE to all that COMMAND writes to.\n"
    "\n";

// The values that CLI11 fills in, as typed.
struct RawOptions {
  bool is_help = false;
  bool is_version = false;
  int quiet_count = 0;
  int verbose_count = 0;
  std::optional<std::string> output;
  std::string color = "auto";
  bool is_json = false;
};

// In the order of Output.
const std::vector<std::string> kOutputs = {"table", "json", "jsonl", "tsv"};
const std::vector<std::string> kColors = {"auto", "always", "never"};

// The index of `word` in `known`. Throws UsageError.
std::size_t place_in(const std::vector<std::string>& known, const std::string& option,
                     const std::string& word) {
  const auto found = std::find(known.begin(), known.end(), word);
  if (found == known.end()) throw UsageError(not_one_of(option, word, known));
  return static_cast<std::size_t>(found - known.begin());
}

// An empty variable counts as unset, so that it can be disabled for one call.
std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::string version_text(bool is_json) {
  if (!is_json) return std::string("redlatch ") + rl_version() + "\n";
  JsonObject object;
  object.number("schema", 1).text("version", rl_version()).number("abi", rl_abi_version());
  return object.done() + "\n";
}

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

  // Without CLI11's notes on ranges and exclusions, which the descriptions contain.
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
    run_.add_to(*root_.get_subcommand("run"));
    root_.get_subcommand("run")->footer(kExitCodes);
    add_once_options(*root_.get_subcommand("once"));
    elect_.add_to(*root_.get_subcommand("elect"));
    root_.get_subcommand("elect")->footer(std::string(kElection) + kExitCodes);
    add_leader_options(*root_.get_subcommand("leader"), arguments_);
    add_recall_options(*root_.get_subcommand("recall"), arguments_);
    root_.get_subcommand("ls")->add_flag("--exit-code", arguments_.tells_by_exit_code,
                                         "Exit with 0 if a lock is found, with 1 if none is");
    add_force_release_options(*root_.get_subcommand("force-release"));
    add_limit_options(*root_.get_subcommand("limit"));
    add_server_options(*root_.get_subcommand("server"));
    add_doctor_options(*root_.get_subcommand("doctor"));
    root_.get_subcommand("version")->add_flag("--json", raw_.is_json, "As one JSON object");
  }

  void parse(const std::vector<std::string>& words) {
    split(words);
    std::vector<std::string> reversed(head_.rbegin(), head_.rend());
    try {
      root_.parse(reversed);
    } catch (const CLI::ParseError& error) {
      // "Could not convert: --askpass = secret"
      const std::string text = error.what();
      throw UsageError(escaped(text.substr(0, text.find(" = "))) + hint());
    }
    const bool is_help = raw_.is_help || (arguments_.command == "help" && !raw_.is_version);
    if (!is_help && !raw_.is_version) check();
    if (is_help) {
      arguments_.text = help_text();
    } else if (raw_.is_version || arguments_.command == "version") {
      arguments_.text = version_text(raw_.is_json || raw_.output == "json");
    }
    if (!arguments_.text.empty()) arguments_.command = "print";
  }

 private:
  void add_global_options() {
    root_.add_flag("-h,--help", raw_.is_help, "Print help");
    root_.footer("Parentheses show the default, or the variable that is read.");
    root_.add_flag("-V,--version", raw_.is_version, "Print the version");
    auto* url =
        root_.add_option("-u,--url", arguments_.urls,
                         "redis[s]://HOST:PORT/DB, redis[s]-sentinel://HOST,HOST/NAME/DB, "
                         "redis[s]+cluster://HOST,HOST, unix:///PATH or embedded://[/FOLDER] "
                         "(REDLATCH_URL, VALKEY_URL, REDIS_URL); repeated: a quorum of "
                         "independent servers");
    url->type_name("URL")->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    root_
        .add_flag("--local", arguments_.is_local,
                  "A server of this host, started when needed: locks for this host only")
        ->excludes(url);
    arguments_.options.add_client_options(root_);
    root_
        .add_flag("--insecure", is_insecure_,
                  "Do not verify the server certificate (--tls-verify none)")
        ->group("TLS options (rediss://)");
    root_.add_flag("--askpass", arguments_.asks_password, "Ask for the password on the terminal")
        ->excludes(root_.get_option("--password-file"));
    root_
        .add_option("-o,--output", raw_.output,
                    "table, json, jsonl, tsv (REDLATCH_OUTPUT; table on a terminal, else tsv)")
        ->type_name("FORMAT");
    root_.add_option("--color", raw_.color, "auto, always or never (auto; NO_COLOR)")
        ->type_name("WHEN");
    root_.add_flag("-q,--quiet", raw_.quiet_count, "Print only usage errors; twice: print nothing");
    root_.add_flag("-v,--verbose", raw_.verbose_count,
                   "Print successes too; twice: print all events");
  }

  void add_once_options(CLI::App& command) {
    command
        .add_option("--every", every_,
                    "The period, which begins with its first run. A success is remembered for 90 % "
                    "of it, because schedulers may start some ms early: 100ms to 366d")
        ->type_name("DUR");
    command
        .add_option("--key", key_,
                    "Name the period by this text, such as \"$(date +%F)\": one success for each "
                    "text, remembered for all of --every")
        ->type_name("TEXT");
    command.add_option("--tries", tries_, "Run at most this often in a period if runs fail (3)")
        ->type_name("N");
    command.add_flag("--forget", forgets_, "Forget the runs of NAME: the next start runs");
    once_.add_to_once(command);
    command.footer(kExitCodes);
  }

  void add_force_release_options(CLI::App& command) {
    command.add_flag("-y,--yes", arguments_.is_confirmed, "Do not ask");
    command
        .add_option("--if-owner", arguments_.if_owner,
                    "Remove only the holder with this token (`status` shows it)")
        ->type_name("TOKEN");
  }

  void add_limit_options(CLI::App& command) {
    command.add_flag("--clear", arguments_.clears_cap, "Remove the cap");
    command
        .add_option("--for", cap_for_, "How long the cap lasts (until 7 days without an acquire)")
        ->type_name("DUR");
  }

  void add_server_options(CLI::App& command) {
    command.add_flag("--run", arguments_.stays,
                     "Start the server, and keep it until a signal comes");
  }

  void add_doctor_options(CLI::App& command) {
    command
        .add_option("-w,--wait", check_wait_, "Try to reach a server for at most this long (once)")
        ->type_name("DUR");
    command
        .add_option("--min-replicas", min_replicas_,
                    "Check that this many replicas confirm a grant (0)")
        ->type_name("N");
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
      // The first word after the name that is not an option begins the child's command.
      if (has_child() && arguments_.names.size() == 1 && starts_child(is_raw)) {
        take_child();
      }
    }
  }

  [[nodiscard]] bool has_child() const {
    const std::string& command = arguments_.command;
    return command == "run" || command == "once" || command == "elect";
  }

  [[nodiscard]] bool starts_child(bool is_raw) const {
    if (position_ >= words_.size()) return false;
    const std::string& next = words_[position_];
    return is_raw || next == "--" || next.size() < 2 || next[0] != '-';
  }

  void take_child() {
    if (words_[position_] == "--") ++position_;
    child_words_.assign(words_.begin() + static_cast<std::ptrdiff_t>(position_), words_.end());
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
    if (command == nullptr) throw UsageError(unknown_command(word));
    arguments_.command = word;
    head_.push_back(word);
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
    if (option == nullptr) throw UsageError(unknown_option(command, name));
    return option->get_items_expected_max() > 0;
  }

  // An option of a command that is typed before the command is unknown, too.
  [[nodiscard]] std::string unknown_option(const CLI::App* command, const std::string& name) const {
    for (std::size_t i = position_; command == nullptr && i < words_.size(); ++i) {
      command = find_command(words_[i]);
    }
    if (command != nullptr && command->get_option_no_throw(name) != nullptr) {
      return "option " + in_quotes(name) + " must be behind '" + command->get_name() + "'" + hint();
    }
    const std::string guess = guessed_option(name, command == nullptr ? "" : command->get_name(),
                                             !arguments_.command.empty());
    if (!guess.empty()) return unknown("option", name) + guess;
    if (!name.starts_with("--")) return unknown("option", name) + hint();
    // Without the dashes, which would make two short names similar.
    const std::string near = nearest(name.substr(2), option_names(command));
    return unknown("option", name) + suggestion(near.empty() ? "" : "--" + near) + hint();
  }

  [[nodiscard]] std::string unknown_command(const std::string& word) const {
    const std::string guess = guessed_command(word);
    if (!guess.empty()) return unknown("command", word) + guess;
    return unknown("command", word) + suggestion(nearest(word, command_names())) + hint();
  }

  [[nodiscard]] static std::string unknown(const std::string& kind, const std::string& word) {
    return "unknown " + kind + " " + in_quotes(without_secrets(word));
  }

  [[nodiscard]] static std::string suggestion(const std::string& meant) {
    return meant.empty() ? "" : ", did you mean '" + meant + "'?";
  }

  [[nodiscard]] std::string hint() const {
    const std::string& command = arguments_.command;
    const bool is_about_one = !command.empty() && command != "help";
    return "\nredlatch: see 'redlatch help" + (is_about_one ? " " + command : "") + "'";
  }

  // A line for each command, and an example.
  [[nodiscard]] static std::string commands_text() {
    constexpr std::size_t kColumn = 15;
    std::string text;
    for (const Command& command : kCommands) {
      std::string name = command.name;
      name.resize(kColumn, ' ');
      text += "  " + name + command.summary + "\n";
    }
    return text + "Example: redlatch --url redis://HOST:6379 run nightly -- ./report";
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
        for (const std::string& name : option->get_lnames()) names.push_back(name);
      }
    }
    return names;
  }

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
    if (command == nullptr) throw UsageError(unknown_command(topic));
    return help_of(command) + "Options of every command (--url ..): see 'redlatch help'.\n";
  }

  void check() {
    const std::string& command = arguments_.command;
    const std::size_t count = arguments_.names.size();
    check_urls();
    if (is_insecure_) arguments_.options.set("tls_verify", "none");
    if (command.empty()) throw UsageError("a command is missing\n" + commands_text() + hint());
    const bool takes_none = command == "version" || command == "server" || command == "doctor";
    const bool takes_one = command == "ls" || command == "leader" || command == "recall";
    const std::size_t most = takes_none ? 0 : takes_one ? 1 : count;
    if (count > most)
      throw UsageError("unexpected " + in_quotes(without_secrets(arguments_.names[most])) + hint());
    if (count == 0 && !takes_none && command != "ls") {
      throw UsageError("the NAME of " + std::string(has_child() ? "the" : "a") +
                       " lock is missing" + hint());
    }
    for (const std::string& name : arguments_.names) check_name(name);
    if (command == "run") check_run(run_);
    if (command == "elect") check_run(elect_);
    if (command == "once") check_once();
    if (command == "limit") check_limit();
    check_recall(arguments_);
    if (check_wait_) arguments_.check_wait_ms = duration("--wait", *check_wait_);
    if (min_replicas_) {
      arguments_.min_replicas = number_from("--min-replicas", *min_replicas_, 0, RL_MAX_REPLICAS);
    }
    if (arguments_.if_owner && arguments_.if_owner->empty()) {
      throw UsageError("--if-owner must be a token (got an empty text)");
    }
    if (arguments_.if_owner && count > 1) {
      throw UsageError("--if-owner goes with one NAME: a token holds one lock only");
    }
    arguments_.verbosity = raw_.verbose_count - raw_.quiet_count;
    check_output();
  }

  // A URL in the place of a NAME would be shown as a lock's name, with its password.
  static void check_name(const std::string& name) {
    if (!is_url(name)) return;
    throw UsageError("NAME must be the name of a lock (got " + in_quotes(without_secrets(name)) +
                     "); a server is named by --url");
  }

  static int number_from(const std::string& what, const std::string& text, int least, int most) {
    int number = 0;
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, number);
    const bool is_number = parsed.ec == std::errc() && parsed.ptr == end;
    if (is_number && number >= least && number <= most) return number;
    throw UsageError(what + " must be " + std::to_string(least) + " to " + std::to_string(most) +
                     " (got " + in_quotes(without_secrets(text)) + ")");
  }

  // A missing URL, as by an unset variable in a script, would make a quorum of fewer servers.
  void check_urls() const {
    constexpr const char* kSpaces = " \t\r\n";
    const std::vector<std::string>& urls = arguments_.urls;
    for (std::size_t i = 0; i < urls.size(); ++i) {
      const bool is_blank = urls[i].find_first_not_of(kSpaces) == std::string::npos;
      if (!is_blank && urls[i].find_first_of(kSpaces) == std::string::npos) continue;
      const std::string number = urls.size() == 1 ? "" : " number " + std::to_string(i + 1);
      throw UsageError("--url" + number +
                       (is_blank ? " must not be empty"
                                 : " must have no space: name each server by its own --url"));
    }
  }

  // The second word is the number, and no name.
  void check_limit() {
    std::vector<std::string>& names = arguments_.names;
    if (names.size() > 2) {
      throw UsageError("unexpected " + in_quotes(without_secrets(names[2])) + hint());
    }
    if (names.size() == 2) {
      arguments_.cap = number_from("N", names[1], 0, RL_MAX_PERMITS);
      names.pop_back();
    }
    if (arguments_.cap && arguments_.clears_cap) throw UsageError("--clear excludes N");
    if (!cap_for_) return;
    if (!arguments_.cap) throw UsageError("--for needs N: it says how long that cap lasts");
    arguments_.cap_for_ms = duration("--for", *cap_for_);
    if (arguments_.cap_for_ms < 1 || arguments_.cap_for_ms > RL_MAX_TTL_MS) {
      throw UsageError("--for must be 1ms to " + std::to_string(RL_MAX_TTL_MS / kDayMs) +
                       "d (got " + in_quotes(without_secrets(*cap_for_)) + ")");
    }
  }

  template <typename Options>
  void check_run(const Options& parser) {
    arguments_.run = parser.checked(child_words_);
    if (!arguments_.run.words.empty()) return;
    throw UsageError("the command to run under lock " +
                     in_quotes(without_secrets(arguments_.names.front())) + " is missing" + hint());
  }

  void check_once() {
    if (forgets_) {
      if (every_ || key_ || tries_ || !child_words_.empty()) {
        throw UsageError("--forget goes with NAME alone: it forgets the runs of all periods");
      }
      arguments_.run.once.emplace().forgets = true;
      return;
    }
    check_run(once_);
    if (!every_)
      throw UsageError("--every DUR is missing: the period in which COMMAND runs once" + hint());
    RunOptions::Once& once = arguments_.run.once.emplace();
    once.every_ms = duration("--every", *every_);
    if (once.every_ms < RL_MIN_EVERY_MS || once.every_ms > RL_MAX_EVERY_DAYS * kDayMs) {
      throw must_be(
          "--every",
          std::to_string(RL_MIN_EVERY_MS) + "ms to " + std::to_string(RL_MAX_EVERY_DAYS) + "d",
          *every_);
    }
    if (tries_) once.tries = number_from("--tries", *tries_, 1, RL_MAX_TRIES);
    if (key_ && (key_->empty() || key_->size() > RL_MAX_PERIOD_BYTES)) {
      throw must_be("--key", "1 to " + std::to_string(RL_MAX_PERIOD_BYTES) + " bytes", *key_);
    }
    once.key = key_.value_or("");
  }

  void check_output() {
    const bool is_terminal = isatty(STDOUT_FILENO) == 1;
    const bool is_plain = variable("NO_COLOR") || variable("TERM") == "dumb";
    place_in(kColors, "--color", raw_.color);
    arguments_.is_colored =
        raw_.color == "always" || (raw_.color == "auto" && is_terminal && !is_plain);
    const auto wanted = raw_.output ? raw_.output : variable("REDLATCH_OUTPUT");
    const std::string fallback = is_terminal ? "table" : "tsv";
    arguments_.output = static_cast<Output>(place_in(
        kOutputs, raw_.output ? "--output" : "REDLATCH_OUTPUT", wanted.value_or(fallback)));
  }

  Arguments& arguments_;
  RawOptions raw_;
  std::optional<std::string> check_wait_;
  std::optional<std::string> min_replicas_;
  std::optional<std::string> cap_for_;
  std::optional<std::string> every_;
  std::optional<std::string> key_;
  std::optional<std::string> tries_;
  bool forgets_ = false;
  bool is_insecure_ = false;
  RunParser run_;
  RunParser once_;
  ElectParser elect_;
  CLI::App root_{"A lock that many hosts share, over Redis or Valkey.", "redlatch"};
  std::vector<std::string> words_;
  std::size_t position_ = 0;
  std::vector<std::string> head_;
  std::vector<std::string> child_words_;
};

}  // namespace

Arguments parse_arguments(const std::vector<std::string>& words) {
  Arguments arguments;
  Parser(arguments).parse(words);
  return arguments;
}

std::vector<std::string> Arguments::run_names() const {
  std::vector<std::string> all = {names.front()};
  for (const RunOptions::Other& other : run.others) all.push_back(other.name);
  return all;
}

}  // namespace redlatch::cli

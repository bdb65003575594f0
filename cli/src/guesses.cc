// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "guesses.h"

#include <algorithm>
#include <array>

#include "text.h"

namespace redlatch::cli {
namespace {

struct Guess {
  std::string_view word;
  std::string_view meant;  // A command or an option; empty: `text` is the answer.
  std::string_view text;
};

constexpr std::string_view kLock =
    ": a lock is held while a command runs: redlatch run NAME -- COMMAND";
constexpr std::string_view kUnlock =
    ": a lock ends with its command; 'redlatch force-release NAME' takes it away";

constexpr std::string_view kRenewal = ": 'run' renews the lock until its command ends";
constexpr std::string_view kWatch = ": 'watch redlatch ls' shows the locks every 2 s";

constexpr auto kCommandGuesses = std::to_array<Guess>({
    {"list", "ls", ""},
    {"ps", "ls", ""},
    {"info", "status", ""},
    {"show", "status", ""},
    {"inspect", "status", ""},
    {"lead", "elect", ""},
    {"election", "elect", ""},
    {"campaign", "elect", ""},
    {"observe", "leader", ""},
    {"resign", "leader --resign", ""},
    {"lock", "", kLock},
    {"acquire", "", kLock},
    {"unlock", "", kUnlock},
    {"release", "", kUnlock},
    {"break", "force-release", ""},
    {"kill", "force-release", ""},
    {"rm", "force-release", ""},
    {"del", "force-release", ""},
    {"delete", "force-release", ""},
    {"remove", "force-release", ""},
    {"ping", "doctor", ""},
    {"check", "doctor", ""},
    {"exec", "run", ""},
    {"hold", "", kLock},
    {"wait", "", kLock},
    {"locks", "ls", ""},
    {"steal", "force-release", ""},
    {"extend", "", kRenewal},
    {"renew", "", kRenewal},
    {"watch", "", kWatch},
    {"top", "", kWatch},
    {"cap", "limit", ""},
    {"throttle", "limit", ""},
});

constexpr std::string_view kPassword =
    ": use --password-file, --askpass or the variable REDISCLI_AUTH; all users of this host can "
    "read the words of a command line";
constexpr std::string_view kServer = ": the server is named by --url redis://HOST:PORT";
constexpr std::string_view kTls = ": the URL says it: --url rediss://HOST:PORT";

std::string answer_to_output(std::string_view command) {
  return ": the output of '" + std::string(command) +
         "' is that of COMMAND; --status-fd N writes events as JSON";
}

constexpr auto kOptionGuesses = std::to_array<Guess>({
    {"--password", "", kPassword},
    {"--pass", "", kPassword},
    {"--auth", "", kPassword},
    {"-a", "", kPassword},
    {"--host", "", kServer},
    {"--port", "", kServer},
    {"-p", "", kServer},
    {"--tls", "", kTls},
    {"--ssl", "", kTls},
});

constexpr std::string_view kName = ": NAME is the first word after 'run' that is no option";
constexpr std::string_view kAll = ": 'ls' needs no option for that; '-o json' has every field";

// Options of `run` only.
constexpr auto kRunGuesses = std::to_array<Guess>({
    {"--no-wait", "--nonblock", ""},
    {"--nowait", "--nonblock", ""},
    {"--non-blocking", "--nonblock", ""},
    {"--try", "--nonblock", ""},
    {"--block", "", ": 'run' waits until it has the lock; --wait DUR limits that"},
    {"--read", "--shared", ""},
    {"--write", "--exclusive", ""},
    {"--lease", "--ttl", ""},
    {"--expire", "--ttl", ""},
    {"--lock", "", kName},
    {"--name", "", kName},
    {"--and", "--also", ""},
    {"--limit", "--permits", ""},
    {"--semaphore", "--permits", ""},
});

constexpr std::string_view kAlone =
    ": the lock of 'once' is a mutex: only one run of a job is under way at a time";
constexpr std::string_view kFixed = ": 'once' sets it";
constexpr std::string_view kOneName =
    ": the runs of one NAME are remembered; COMMAND can hold other locks with 'redlatch run'";
constexpr std::string_view kNoHold =
    ": 'once' does not need it: the server remembers a success, however short COMMAND was";

// Options of `once`, and those of `run` that it cannot have.
constexpr auto kOnceGuesses = std::to_array<Guess>({
    {"--shared", "", kAlone},
    {"-s", "", kAlone},
    {"--exclusive", "", kAlone},
    {"-x", "", kAlone},
    {"-e", "", kAlone},
    {"--permits", "", kAlone},
    {"--owner", "", kAlone},
    {"--format", "", kFixed},
    {"--max-local-handoffs", "", kFixed},
    {"--also", "", kOneName},
    {"--also-shared", "", kOneName},
    {"--min-hold", "", kNoHold},
    {"--period", "--every", ""},
    {"--interval", "--every", ""},
    {"--retries", "--tries", ""},
    {"--reset", "--forget", ""},
    {"--read", "", kAlone},
    {"--write", "", kAlone},
    {"--semaphore", "", kAlone},
});

constexpr std::string_view kLeader = ": one candidate leads at a time: its lock is a mutex";
constexpr std::string_view kStandBy = ": a candidate of 'elect' stands by until it leads";
constexpr std::string_view kNoEnd = ": a lost term does not end 'elect', which stands by again";

// Options of `elect`, and those of `run` that it cannot have.
constexpr auto kElectGuesses = std::to_array<Guess>({
    {"--shared", "", kLeader},
    {"-s", "", kLeader},
    {"--exclusive", "", kLeader},
    {"-x", "", kLeader},
    {"-e", "", kLeader},
    {"--permits", "", kLeader},
    {"--owner", "", kLeader},
    {"--format", "", kLeader},
    {"--also", "", kLeader},
    {"--also-shared", "", kLeader},
    {"--nonblock", "", kStandBy},
    {"-n", "", kStandBy},
    {"--wait", "", kStandBy},
    {"-w", "", kStandBy},
    {"--timeout", "", kStandBy},
    {"--if-busy", "", kStandBy},
    {"--conflict-exit-code", "", kStandBy},
    {"-E", "", kStandBy},
    {"--preserve-status", "", kNoEnd},
    {"--name", "--id", ""},
    {"--candidate", "--id", ""},
    {"--election", "", ": NAME is the first word after 'elect' that is no option"},
    {"--listen", "--http", ""},
});

constexpr auto kForceGuesses = std::to_array<Guess>({
    {"--force", "--yes", ""},
    {"-f", "--yes", ""},
    {"--token", "--if-owner", ""},
});

constexpr auto kListGuesses = std::to_array<Guess>({
    {"-a", "", kAll},
    {"--all", "", kAll},
    {"-l", "", kAll},
});

constexpr auto kOutputs = std::to_array<Guess>({
    {"--table", "-o table", ""},
    {"--json", "-o json", ""},
    {"--jsonl", "-o jsonl", ""},
    {"--tsv", "-o tsv", ""},
});

template <std::size_t kCount>
std::string answer_in(const std::array<Guess, kCount>& guesses, std::string_view word) {
  const auto is_it = [word](const Guess& guess) { return guess.word == word; };
  const auto* found = std::find_if(guesses.begin(), guesses.end(), is_it);
  if (found == guesses.end()) return "";
  if (found->meant.empty()) return std::string(found->text);
  return ", did you mean '" + std::string(found->meant) + "'?";
}

bool consists_of(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

}  // namespace

std::string guessed_command(std::string_view word) { return answer_in(kCommandGuesses, word); }

std::string guessed_option(std::string_view name, std::string_view command, bool is_behind) {
  if (auto output = answer_in(kOutputs, name); !output.empty()) {
    // After `run`, -o is --close of flock(1), and the next word would be the name of the lock.
    const bool has_child = command == "run" || command == "once" || command == "elect";
    return has_child ? answer_to_output(command) : output;
  }
  if (command == "once") {
    if (auto answer = answer_in(kOnceGuesses, name); !answer.empty()) return answer;
  }
  if (command == "elect") {
    if (auto answer = answer_in(kElectGuesses, name); !answer.empty()) return answer;
  }
  if (command == "run" || command.empty()) {
    if (auto answer = answer_in(kRunGuesses, name); !answer.empty()) return answer;
  }
  if (command == "force-release") {
    if (auto answer = answer_in(kForceGuesses, name); !answer.empty()) return answer;
  }
  if (command == "ls" && is_behind) {
    if (auto answer = answer_in(kListGuesses, name); !answer.empty()) return answer;
  }
  return answer_in(kOptionGuesses, name);
}

std::string with_scheme(const std::string& address) {
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::string_view kOfHosts =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
  constexpr std::size_t kMaxPortDigits = 5;
  const std::string_view text = address;
  if (text == "localhost") return "redis://" + address;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || !consists_of(text.substr(0, colon), kOfHosts)) return "";
  const std::string_view rest = text.substr(colon + 1);
  const std::string_view port = rest.substr(0, rest.find('/'));
  if (port.size() > kMaxPortDigits || !consists_of(port, kDigits)) return "";
  const std::string_view path = rest.substr(port.size());
  if (path.size() > 1 && !consists_of(path.substr(1), kDigits)) return "";
  return "redis://" + address;
}

std::string not_found_hint(const std::vector<std::string>& words, const std::string& lock) {
  std::string text = " (the lock is " + in_quotes(lock) + ")";
  if (words.size() == 1 && words.front().find(' ') != std::string::npos) {
    text += "; to run a line of the shell: sh -c LINE";
  }
  return text;
}

}  // namespace redlatch::cli

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "option_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "duration.h"
#include "exit_code.h"
#include "handles.h"
#include "text.h"

namespace redlatch::cli {
namespace {

// A password does not belong on a command line. `run` decides the rest by itself.
constexpr std::array<std::string_view, 5> kWithoutFlag = {"password", "sentinel_password", "label",
                                                          "confirm", "reentrant"};
// As redis-cli has them.
constexpr std::array<std::pair<std::string_view, const char*>, 4> kSpellings = {
    {{"tls_ca", "--cacert"}, {"tls_cert", "--cert"}, {"tls_key", "--key"}, {"tls_sni", "--sni"}}};

// `run` makes an owner reentrant, which the library does only if asked to.
constexpr const char* kOwnerText =
    "name of the owner, who may acquire the lock again at once while it holds it; not with -s";

std::string spelling_of(std::string_view name) {
  for (const auto& [known, spelling] : kSpellings) {
    if (known == name) return spelling;
  }
  std::string spelling = "--" + std::string(name);
  std::replace(spelling.begin(), spelling.end(), '_', '-');
  return spelling;
}

std::string type_of(std::string_view kind) {
  if (kind == "DURATION") return "DUR";
  if (kind == "COUNT") return "N";
  if (kind == "CHOICE") return "WORD";
  if (kind.starts_with("FILE") || kind == "PROGRAM" || kind == "PASSWORD_FILE") return "PATH";
  return "TEXT";
}

// The library's durations have a unit and no fraction. A word is passed on as it is.
std::string in_ms(const std::string& text) {
  const auto ms = parse_duration_ms(text);
  return ms ? std::to_string(*ms) + "ms" : text;
}

#define RL_LIMIT(NAME, type, constant, value, text) \
  [[maybe_unused]] constexpr type constant = value;
#include "../../core/config/options.def"

// The default as it is typed; "" if there is none, or if the text says it.
std::string number_default(std::string_view kind, std::int64_t initial, std::string_view words) {
  if (kind == "DURATION" && initial > 0) {
    return initial % 1000 == 0 ? std::to_string(initial / 1000) + "s"
                               : std::to_string(initial) + "ms";
  }
  if (kind == "COUNT" && initial >= 0) return std::to_string(initial);
  if (kind == "SWITCH") return initial == 1 ? "yes" : "";
  for (; kind == "CHOICE" && initial > 0; --initial) words.remove_prefix(words.find(' ') + 1);
  return std::string(words.substr(0, words.find(' ')));
}
template <typename Initial>
std::string default_of(std::string_view kind, Initial initial, std::string_view words) {
  if constexpr (std::is_integral_v<Initial>) {
    return number_default(kind, initial, words);
  } else {
    return initial;
  }
}

// The shortest text of a duration: "500ms", "1h", "7d".
std::string duration_text(std::int64_t ms) {
  constexpr std::array<std::pair<std::int64_t, const char*>, 4> kUnits = {
      {{86'400'000, "d"}, {3'600'000, "h"}, {60'000, "m"}, {1000, "s"}}};
  for (const auto& [size, unit] : kUnits) {
    if (ms % size == 0) return std::to_string(ms / size) + unit;
  }
  return std::to_string(ms) + "ms";
}

// The words of a choice, unless the text has them all.
std::string words_beside(std::string_view text, std::string_view words) {
  std::string list;
  bool are_said = true;
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    words.remove_prefix(std::min(word.size() + 1, words.size()));
    are_said = are_said && text.find(word) != std::string_view::npos;
    list.append(list.empty() ? ": " : ", ").append(word);
  }
  return are_said ? "" : list;
}

std::string upper_first(std::string text) {
  if (text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

}  // namespace

std::optional<std::string> OptionFlags::Flag::value() const {
  if (is_switch && is_on) return text_of_switch;
  return text && is_duration ? in_ms(*text) : text;
}

// A row of options.def.
struct OptionFlags::Row {
  char scope;
  const char* name;
  std::string_view kind;
  std::int64_t least;
  std::int64_t most;
  std::string initial;
  const char* words;
  std::string text;
};

// ": 1ms to 1h", ": off, or 1s to 1h", ": 2 or 3"; "" for other kinds.
std::string OptionFlags::range_of(const Row& row) {
  if (row.kind == "DURATION") {
    const std::string word = *row.words == '\0' ? "" : std::string(row.words) + ", or ";
    return ": " + word + duration_text(row.least) + " to " + duration_text(row.most);
  }
  if (row.kind != "COUNT") return "";
  return ": " + std::to_string(row.least) + (row.most == row.least + 1 ? " or " : " to ") +
         std::to_string(row.most);
}

void OptionFlags::add(CLI::App& app, const char* group, const Row& row) {
  if (std::count(kWithoutFlag.begin(), kWithoutFlag.end(), row.name) > 0) return;
  Flag& flag = flags_.emplace_back();
  flag.scope = row.scope;
  flag.name = row.name;
  flag.spelling = spelling_of(row.name);
  flag.is_duration = row.kind == "DURATION";
  flag.is_switch = row.kind == "SWITCH";
  const std::string said = flag.name == "owner" ? kOwnerText : row.text;
  std::string help = row.kind == "CHOICE" ? said + words_beside(said, row.words)
                                          : upper_first(said) + range_of(row);
  if (flag.is_switch) {
    const bool is_default = row.initial == "yes";
    flag.text_of_switch = is_default ? "no" : "yes";
    if (is_default) flag.spelling = "--no-" + flag.spelling.substr(2);
    app.add_flag(flag.spelling, flag.is_on, is_default ? "Do not " + row.text : help)->group(group);
  } else {
    if (!row.initial.empty()) help += " (" + row.initial + ")";
    app.add_option(flag.spelling, flag.text, help)->type_name(type_of(row.kind))->group(group);
  }
}

#define RL_FLAG(scope, group, name, field, KIND, least, most, initial, words, since, text) \
  add(app, group,                                                                          \
      {scope, #name, #KIND, least, most, default_of(#KIND, initial, words), words, text});

void OptionFlags::add_client_options(CLI::App& app) {
  constexpr const char* kOfSentinels = "Sentinel options (redis-sentinel://)";
#define RL_CLIENT_OPTION(...) RL_FLAG('C', "Client options", __VA_ARGS__)
#define RL_TLS_OPTION(...) RL_FLAG('T', "TLS options (rediss://)", __VA_ARGS__)
#define RL_SENTINEL_OPTION(...) RL_FLAG('S', kOfSentinels, __VA_ARGS__)
#define RL_SENTINEL_TLS_OPTION(...) RL_FLAG('S', kOfSentinels, __VA_ARGS__)
#define RL_QUORUM_OPTION(...) RL_FLAG('Q', "Redlock options", __VA_ARGS__)
#include "../../core/config/options.def"
}

void OptionFlags::add_acquire_options(CLI::App& app){
#define RL_ACQUIRE_OPTION(...) RL_FLAG('A', "Lock options", __VA_ARGS__)
#define RL_LOCK_OPTION(...) RL_FLAG('L', "Lock options", __VA_ARGS__)
#include "../../core/config/options.def"
}

#undef RL_FLAG

std::optional<std::string> OptionFlags::value(std::string_view name) const {
  for (const Flag& flag : flags_) {
    if (flag.name == name) return flag.value();
  }
  return std::nullopt;
}

void OptionFlags::set(std::string_view name, const std::string& text) {
  for (Flag& flag : flags_) {
    if (flag.name == name) flag.text = text;
  }
}

void OptionFlags::drop_those_of_quorum() {
  for (Flag& flag : flags_) {
    if (flag.scope != 'Q') continue;
    flag.is_on = false;
    flag.text.reset();
  }
}

std::string OptionFlags::given(char scope) const {
  for (const Flag& flag : flags_) {
    if (flag.scope == scope && flag.value()) return flag.spelling;
  }
  return "";
}

std::string OptionFlags::Flag::message_of(const rl_error* error) const {
  std::string message = escaped(rl_error_message(error));
  const std::string prefix = "option '" + name + "'";
  if (message.starts_with(prefix)) message.replace(0, prefix.size(), spelling);
  const std::size_t got = message.rfind(" (got ");
  if (is_duration && text && got != std::string::npos) {
    message.replace(got, std::string::npos, " (got " + in_quotes(*text) + ")");
  }
  return message;
}

// `Set` is the library's setter of options by name.
template <auto Set, class Options>
std::optional<OptionFlags::Refusal> OptionFlags::apply_to(Options* options) const {
  const ErrorHandle error(not_null(rl_error_new()));
  for (const Flag& flag : flags_) {
    const auto text = flag.value();
    if (!text) continue;
    const rl_status status =
        Set(options, flag.name.data(), flag.name.size(), text->data(), text->size(), error.get());
    if (status != RL_OK) return Refusal{status, flag.name, flag.message_of(error.get())};
  }
  return std::nullopt;
}

void OptionFlags::apply(rl_acquire_options* options) const {
  if (const auto refusal = apply_to<rl_acquire_options_set>(options)) {
    throw UsageError(refusal->message);
  }
}

std::optional<OptionFlags::Refusal> OptionFlags::apply(rl_client_options* options) const {
  return apply_to<rl_client_options_set>(options);
}

}  // namespace redlatch::cli

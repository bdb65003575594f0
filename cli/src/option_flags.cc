// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "option_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
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
    "Name of the owner, who may acquire the lock again at once while it holds it; not with -s";

std::string spelling_of(std::string_view name) {
  for (const auto& [known, spelling] : kSpellings) {
    if (known == name) return spelling;
  }
  std::string spelling = "--" + std::string(name);
  std::replace(spelling.begin(), spelling.end(), '_', '-');
  return spelling;
}

// The library's durations have a unit and no fraction. A word is passed on as it is.
std::string in_ms(const std::string& text) {
  const auto ms = parse_duration_ms(text);
  return ms ? std::to_string(*ms) + "ms" : text;
}

// A row of options.def, as a flag.
struct Row {
  char scope;  // Its first letter; K of a cluster.
  std::string_view name;
  std::string_view type;  // "yes" or "no": the value of a switch.
  const char* help;
};

constexpr Row kRows[] = {
#define RL_FLAG(...) {__VA_ARGS__},
#include "flags.def"
#undef RL_FLAG
};

bool is_of_acquisition(const Row& row) { return row.scope == 'A' || row.scope == 'L'; }

const char* group_of(char scope) {
  switch (scope) {
    case 'C':
      return "Client options";
    case 'T':
      return "TLS options (rediss://)";
    case 'S':
      return "Sentinel options (redis-sentinel://)";
    case 'K':
      return "Cluster options (redis+cluster://)";
    case 'Q':
      return "Redlock options";
    default:
      return "Lock options";
  }
}

}  // namespace

std::optional<std::string> OptionFlags::Flag::value() const {
  if (is_switch && is_on) return text_of_switch;
  return text && is_duration ? in_ms(*text) : text;
}

void OptionFlags::add(CLI::App& app, bool are_of_acquisition) {
  for (const Row& row : kRows) {
    const bool has_flag =
        std::find(kWithoutFlag.begin(), kWithoutFlag.end(), row.name) == kWithoutFlag.end();
    if (!has_flag || is_of_acquisition(row) != are_of_acquisition) continue;
    Flag& flag = flags_.emplace_back();
    flag.scope = row.scope;
    flag.name = row.name;
    flag.spelling = spelling_of(row.name);
    flag.is_duration = row.type == "DUR";
    flag.is_switch = row.type == "yes" || row.type == "no";
    const std::string help = row.name == "owner" ? kOwnerText : row.help;
    if (flag.is_switch) {
      flag.text_of_switch = row.type;
      if (row.type == "no") flag.spelling = "--no-" + flag.spelling.substr(2);
      app.add_flag(flag.spelling, flag.is_on, help)->group(group_of(row.scope));
    } else {
      app.add_option(flag.spelling, flag.text, help)
          ->type_name(std::string(row.type))
          ->group(group_of(row.scope));
    }
  }
}

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

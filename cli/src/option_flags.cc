// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "option_flags.h"

#include <CLI/CLI.hpp>

#include "duration.h"
#include "exit_code.h"
#include "handles.h"
#include "text.h"

namespace redlatch::cli {
namespace {

// The library's durations have a unit and no fraction. A word is left as it is.
std::string in_ms(const std::string& text) {
  const auto ms = parse_duration_ms(text);
  return ms ? std::to_string(*ms) + "ms" : text;
}

// A row of options.def, as a flag.
struct Row {
  char scope;  // Its first letter; K of a cluster.
  const char* group;
  std::string_view name;
  const char* spelling;
  std::string_view type;  // "yes" or "no": the value of a switch.
  const char* help;
};

constexpr Row kRows[] = {
#define RL_FLAG(...) {__VA_ARGS__},
#include "flags.def"
#undef RL_FLAG
};

bool is_of_acquisition(const Row& row) { return row.scope == 'A' || row.scope == 'L'; }

// The lock of `once` and `elect` is a mutex in the format string, and each has a grant of its own.
bool is_fixed(const Row& row) {
  return row.name == "owner" || row.name == "format" || row.name == "max_local_handoffs";
}

}  // namespace

std::optional<std::string> OptionFlags::Flag::value() const {
  if (is_switch && is_on) return text_of_switch;
  return text && is_duration ? in_ms(*text) : text;
}

void OptionFlags::add(CLI::App& app, Use use) {
  for (const Row& row : kRows) {
    if (is_of_acquisition(row) != (use != Use::kClient)) continue;
    if (use == Use::kMutex && is_fixed(row)) continue;
    Flag& flag = flags_.emplace_back();
    flag.scope = row.scope;
    flag.name = row.name;
    flag.spelling = row.spelling;
    flag.is_duration = row.type == "DUR";
    flag.is_switch = row.type == "yes" || row.type == "no";
    if (flag.is_switch) {
      flag.text_of_switch = row.type;
      app.add_flag(flag.spelling, flag.is_on, row.help)->group(row.group);
    } else {
      app.add_option(flag.spelling, flag.text, row.help)
          ->type_name(std::string(row.type))
          ->group(row.group);
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

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Words that other tools have for commands, options and servers, and what they are called here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace redlatch::cli {

// The end of the message "unknown command 'list'"; "" if the word is not one of these.
[[nodiscard]] std::string guessed_command(std::string_view word);

// The same for an option. `command`: the command that it belongs to, "" = none. `is_behind`: it was
// typed behind the command.
[[nodiscard]] std::string guessed_option(std::string_view name, std::string_view command,
                                         bool is_behind);

// "redis://HOST:PORT" for the text HOST:PORT, with /DB if that follows; "" for any other text,
// which may be a secret.
[[nodiscard]] std::string with_scheme(const std::string& address);

// The probable mistake when the program words[0] was not found.
[[nodiscard]] std::string not_found_hint(const std::vector<std::string>& words,
                                         const std::string& lock);

}  // namespace redlatch::cli

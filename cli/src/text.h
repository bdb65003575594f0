// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Text for people and for JSON: a name may hold any bytes, and a terminal must not interpret them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace redlatch::cli {

[[nodiscard]] bool is_utf8(std::string_view text);

// `text` with control characters, backslashes and bytes that are not UTF-8 written as \n or \x1b.
[[nodiscard]] std::string escaped(std::string_view text);

// The same in single quotes, for messages. A long text is cut.
[[nodiscard]] std::string in_quotes(std::string_view text);

// A word of the command line that may be a URL in the wrong place: without its password.
[[nodiscard]] std::string without_secrets(const std::string& word);

// True for the URL of a server, also if the end of its scheme is misspelt.
[[nodiscard]] bool is_url(std::string_view word);

// "lock 'name'", as messages call it.
[[nodiscard]] std::string lock_words(std::string_view name);
// The same for several: "locks 'a', 'b'".
[[nodiscard]] std::string lock_words(const std::vector<std::string>& names);

// `text` in bold type on a terminal, if `is_on`.
[[nodiscard]] std::string bold(const std::string& text, bool is_on);

// How many columns of a terminal `text` takes, wide characters aside.
[[nodiscard]] std::size_t column_count(std::string_view text);

// `text` as a JSON string with its quotes. Text that is not UTF-8 is escaped() first, because JSON
// has no other bytes.
[[nodiscard]] std::string json_string(std::string_view text);

// The first `max_bytes` of `text` at most, without half a character at the end.
[[nodiscard]] std::string_view cut(std::string_view text, std::size_t max_bytes);

// A command line for a shell: words with blanks or quotes are quoted.
[[nodiscard]] std::string joined_command(const std::vector<std::string>& words);

// "--on: 'maybe' is not one of yes and no", with the probable correction.
[[nodiscard]] std::string not_one_of(std::string_view option, std::string_view value,
                                     const std::vector<std::string>& known);

// The probable correction of `word` among `known`; "" if no word is near.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace redlatch::cli

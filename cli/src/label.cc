// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "label.h"

#include <algorithm>

namespace redlatch::cli {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_in_key(char c) {
  return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

// Takes the first word off `text`, quotes removed: the other direction of joined_command().
std::string take_word(std::string_view& text) {
  std::string word;
  bool is_quoted = false;
  while (!text.empty() && (is_quoted || text.front() != ' ')) {
    const char c = text.front();
    text.remove_prefix(1);
    if (c == '\'') {
      is_quoted = !is_quoted;
    } else if (c == '\\' && !is_quoted && !text.empty()) {
      word += text.front();
      text.remove_prefix(1);
    } else {
      word += c;
    }
  }
  if (!text.empty()) text.remove_prefix(1);
  return word;
}

}  // namespace

bool is_label_pair(std::string_view word) {
  const std::string_view key = word.substr(0, word.find('='));
  return key.size() < word.size() && !key.empty() && is_letter(key.front()) &&
         std::all_of(key.begin(), key.end(), is_in_key);
}

LabelPairs label_pairs(std::string_view label) {
  LabelPairs pairs;
  while (!label.empty()) {
    const std::string word = take_word(label);
    if (!is_label_pair(word)) break;
    const std::size_t equals = word.find('=');
    pairs.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return pairs;
}

}  // namespace redlatch::cli

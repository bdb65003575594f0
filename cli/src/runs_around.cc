// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "runs_around.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace redlatch::cli {
namespace {

constexpr char kVariable[] = "REDLATCH_RUNS";
// The system limits what a command is given; the outermost of very many runs are left out.
constexpr std::size_t kMaxBytes = 16 * 1024;
// Fences of readers, and of callers of one client, lie in the step behind that of the lock.
constexpr std::int64_t kFenceStep = 32;

struct Run {
  std::string_view name;  // name and holder are encoded
  std::int64_t fence;
  std::string_view holder;
};

bool is_plain(char c) {
  const bool is_letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
  const bool is_digit = c >= '0' && c <= '9';
  return is_letter || is_digit || std::string_view("-_.:/@").find(c) != std::string_view::npos;
}

// Without the bytes that separate runs and their fields.
std::string encoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_plain(c)) {
      out += c;
    } else {
      out += '%';
      out += kDigits[byte >> 4U];
      out += kDigits[byte & 15U];
    }
  }
  return out;
}

std::string_view variable() {
  const char* found = std::getenv(kVariable);
  return found == nullptr ? std::string_view() : found;
}

// The text before `mark`, which is removed from `text`.
std::string_view take_until(std::string_view& text, char mark) {
  const std::string_view found = text.substr(0, text.find(mark));
  text.remove_prefix(std::min(found.size() + 1, text.size()));
  return found;
}

std::vector<Run> runs_around(std::string_view name) {
  const std::string wanted = encoded(name);
  std::vector<Run> runs;
  for (std::string_view rest = variable(); !rest.empty();) {
    std::string_view fields = take_until(rest, ' ');
    const std::string_view found = take_until(fields, ',');
    const std::string fence(take_until(fields, ','));
    if (found == wanted) runs.push_back({found, std::strtoll(fence.c_str(), nullptr, 10), fields});
  }
  return runs;
}

}  // namespace

std::string runs_with(const std::vector<HeldLock>& locks, std::string_view holder) {
  std::string all;
  for (const HeldLock& lock : locks) {
    all += encoded(lock.name) + ',' + std::to_string(lock.fence) + ',' + encoded(holder) + ' ';
  }
  all += variable();
  std::string value;
  for (std::string_view rest = all; !rest.empty();) {
    const std::string_view run = take_until(rest, ' ');
    if (!value.empty() && value.size() + run.size() >= kMaxBytes) break;
    value.append(value.empty() ? "" : " ").append(run);
  }
  return value;
}

std::string fence_entries(const std::vector<HeldLock>& locks) {
  std::string text;
  for (const HeldLock& lock : locks) {
    text += (text.empty() ? "" : " ") + encoded(lock.name) + '=' + std::to_string(lock.fence);
  }
  return text;
}

bool is_run_around(std::string_view name) { return !runs_around(name).empty(); }

bool is_run_around(std::string_view name, std::int64_t fence, std::string_view holder) {
  const std::string who = encoded(holder);
  const std::vector<Run> runs = runs_around(name);
  return std::any_of(runs.begin(), runs.end(), [&](const Run& run) {
    const bool is_its_name = run.holder == who;
    if (run.fence == 0) return is_its_name && !who.empty();
    const bool is_its_fence = run.fence >= fence && run.fence - fence < kFenceStep;
    return is_its_fence && (is_its_name || who.empty());
  });
}

}  // namespace redlatch::cli

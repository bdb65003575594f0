// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Several names in one acquire.
#include "calls.h"

#include <algorithm>

#include "base/limits.h"
#include "base/text.h"

using namespace redlatch;
using namespace redlatch::capi;

namespace {

Outcome check_addition(const rl_names &names, std::string_view name, int32_t mode) {
  if (auto outcome = runtime::check_name(name); !outcome.ok()) return outcome;
  if (mode != RL_MODE_WRITE && mode != RL_MODE_READ) {
    return failure(Status::kInvalid, "mode must be " + std::to_string(RL_MODE_WRITE) + " or " +
                                         std::to_string(RL_MODE_READ) + " (got " +
                                         std::to_string(mode) + ")");
  }
  const auto is_same = [&](const runtime::NamedMode &added) { return added.name == name; };
  if (std::any_of(names.names.begin(), names.names.end(), is_same)) {
    return failure(Status::kInvalid, "names must differ (got " + quoted(name) + " twice)");
  }
  if (names.names.size() == kMaxNames) {
    return failure(Status::kInvalid,
                   "names must be 1 to " + std::to_string(kMaxNames) + " (got more)");
  }
  return {};
}

Outcome add(rl_names &names, std::string_view name, int32_t mode) {
  if (auto outcome = check_addition(names, name, mode); !outcome.ok()) return outcome;
  const auto of = mode == RL_MODE_READ ? runtime::Mode::kRead : runtime::Mode::kWrite;
  names.names.push_back({std::string(name), of});
  return {};
}

// The path itself is first: its fence is that of the lease.
Outcome add_path(rl_names &names, std::string_view path) {
  if (path.empty() || path.front() == '/' || path.back() == '/' ||
      path.find("//") != std::string_view::npos) {
    return failure(Status::kInvalid,
                   "path must have no empty component (got " + quoted(path) + ")");
  }
  const auto depth = 1 + std::count(path.begin(), path.end(), '/');
  if (depth > kMaxNames) {
    return failure(Status::kInvalid, "path must have at most " + std::to_string(kMaxNames) +
                                         " components (got " + std::to_string(depth) + ")");
  }
  auto outcome = add(names, path, RL_MODE_WRITE);
  for (size_t end = path.find('/'); outcome.ok() && end != std::string_view::npos;
       end = path.find('/', end + 1)) {
    outcome = add(names, path.substr(0, end), RL_MODE_READ);
  }
  return outcome;
}

auto acquire_of(const rl_client *client, const rl_names *names, int64_t wait_ms,
                const rl_acquire_options *options) {
  return [=](Request &request) {
    if (names == nullptr) return is_null("names");
    return fill_acquire_all(*client, request, names->names, wait_ms, options);
  };
}

}  // namespace

extern "C" {

rl_names *rl_names_new(void) { return new (std::nothrow) rl_names; }

void rl_names_free(rl_names *names) { delete names; }

rl_status rl_names_add(rl_names *names, const char *name, size_t name_len, int32_t mode,
                       rl_error *err) {
  if (names == nullptr) return null_argument(err, "names");
  return guarded_status(err, [&](rl_error *e) {
    Outcome outcome = check_text("name", name, name_len);
    if (outcome.ok()) outcome = add(*names, text_of(name, name_len), mode);
    answer(e, outcome);
  });
}

rl_status rl_names_add_path(rl_names *names, const char *path, size_t path_len, rl_error *err) {
  if (names == nullptr) return null_argument(err, "names");
  const size_t before = names->names.size();
  const rl_status status = guarded_status(err, [&](rl_error *e) {
    Outcome outcome = check_text("path", path, path_len);
    if (outcome.ok()) outcome = add_path(*names, text_of(path, path_len));
    answer(e, outcome);
  });
  if (status != RL_OK)
    names->names.erase(names->names.begin() + static_cast<long>(before), names->names.end());
  return status;
}

rl_lease *rl_acquire_all(rl_client *client, const rl_names *names, int64_t wait_ms,
                         const rl_acquire_options *options, rl_error *err) {
  return run_for_lease(client, Request::Op::kAcquire, err,
                       acquire_of(client, names, wait_ms, options));
}

rl_request *rl_acquire_all_start(rl_client *client, const rl_names *names, int64_t wait_ms,
                                 const rl_acquire_options *options) {
  return start(client, Request::Op::kAcquire, acquire_of(client, names, wait_ms, options));
}

int32_t rl_lease_part_count(const rl_lease *lease) {
  if (lease == nullptr) return 0;
  return static_cast<int32_t>(std::max<size_t>(1, lease->lease->part_fences.size()));
}

int64_t rl_lease_part_fence(const rl_lease *lease, int32_t index) {
  if (index < 0 || index >= rl_lease_part_count(lease)) return 0;
  if (!lease->lease->is_composite()) return rl_lease_fence(lease);
  return lease->lease->part_fences[static_cast<size_t>(index)];
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "wire/command.h"

namespace redlatch::wire {

namespace {

Command &begin(Command &out, const Dialect &dialect, Form form, Script script, int64_t key_count) {
  const ScriptText &text = script_text(script, dialect.is_sharded);
  if (form == Form::kText) {
    out.add("EVAL").add(text.text);
  } else {
    out.add("EVALSHA").add(text.sha1);
  }
  return out.add(key_count);
}

}  // namespace

void acquire(Command &out, const Dialect &dialect, Form form, const LockKeys &keys,
             const AcquireCall &call) {
  begin(out, dialect, form, Script::kAcquire, call.leaves_turns ? 4 : 3);
  out.add(keys.lock).add(keys.queue).add(keys.fence);
  if (call.leaves_turns) out.add(keys.turn);
  out.add(call.token).add(call.lease_ms).add(call.member).add(call.ticket).add(dialect.prefix);
}

void release(Command &out, const Dialect &dialect, Form form, const LockKeys &keys,
             std::string_view token, const ForeignTurn &turn) {
  begin(out, dialect, form, Script::kRelease, turn.burst > 0 ? 4 : 3);
  out.add(keys.lock).add(keys.queue).add(keys.fence);
  if (turn.burst > 0) out.add(keys.turn);
  out.add(token).add(dialect.prefix);
  if (turn.burst > 0) out.add(turn.burst).add(turn.window_ms);
}

void track(Command &on, Command &next, Command &look, const LockKeys &keys) {
  on.add("CLIENT").add("TRACKING").add("ON").add("OPTIN");
  next.add("CLIENT").add("CACHING").add("YES");
  look.add("EXISTS").add(keys.lock);  // GET would bring whatever stands there
}

void cancel(Command &out, const Dialect &dialect, Form form, const LockKeys &keys,
            std::string_view member) {
  begin(out, dialect, form, Script::kCancel, 3).add(keys.lock).add(keys.queue).add(keys.fence);
  out.add(member).add(dialect.prefix);
}

void kick(Command &out, const Dialect &dialect, Form form, const LockKeys &keys) {
  begin(out, dialect, form, Script::kKick, 3).add(keys.lock).add(keys.queue).add(keys.fence);
  out.add(dialect.prefix);
}

void extend(Command &out, const Dialect &dialect, Form form, const LockKeys &keys,
            std::string_view token, int64_t lease_ms, bool is_described, const HolderInfo *info) {
  begin(out, dialect, form, Script::kExtend, is_described ? 2 : 1).add(keys.lock);
  if (is_described) out.add(keys.info);
  out.add(token).add(lease_ms);
  if (info == nullptr) return;
  out.add("who").add(info->who).add("label").add(info->label);
  out.add("since").add(info->since_ms);
}

void list(Command &out, const Dialect &dialect, Form form, std::string_view cursor,
          std::string_view pattern) {
  begin(out, dialect, form, Script::kList, 0).add(cursor).add(pattern).add(256);
}

void inspect(Command &out, const Dialect &dialect, Form form, const LockKeys &keys) {
  begin(out, dialect, form, Script::kInspect, 4).add(keys.lock).add(keys.queue).add(keys.fence);
  out.add(keys.info).add(256);
}

void force_release(Command &out, const Dialect &dialect, Form form, const LockKeys &keys,
                   std::string_view token) {
  begin(out, dialect, form, Script::kForceRelease, 3).add(keys.lock).add(keys.queue);
  out.add(keys.fence).add(token).add(dialect.prefix);
}

void probe(Command &out, const Dialect &dialect, std::string_view own, std::string_view unused) {
  begin(out, dialect, Form::kText, Script::kProbe, 0).add(own).add(unused);
}

}  // namespace redlatch::wire

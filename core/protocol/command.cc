// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "protocol/command.h"

#include <initializer_list>

#include "protocol/answer.h"

namespace redlatch::protocol {

namespace {

Command &begin(Command &out, const Dialect &dialect, Form form, Script script, Format format,
               std::initializer_list<std::string_view> keys) {
  const ScriptText &text = script_text(script, format, dialect.is_sharded);
  if (form == Form::kText) {
    out.add("EVAL").add(text.text);
  } else {
    out.add("EVALSHA").add(text.sha1);
  }
  out.add(static_cast<int64_t>(keys.size()));
  for (const std::string_view key : keys) out.add(key);
  return out;
}

// With the keys that most of them take.
Command &begin(Command &out, const Dialect &dialect, Form form, Script script,
               const LockKeys &keys) {
  return begin(out, dialect, form, script, keys.format,
               {keys.lock, keys.queue, keys.fence, keys.readers});
}

// .. and those after which a free key may be left to others, or is.
Command &begin_turn(Command &out, const Dialect &dialect, Form form, Script script,
                    const LockKeys &keys) {
  return begin(out, dialect, form, script, keys.format,
               {keys.lock, keys.queue, keys.fence, keys.readers, keys.turn});
}

}  // namespace

void acquire(Command &out, const Dialect &dialect, Form form, const LockKeys &keys,
             const AcquireCall &call) {
  if (call.mode == Mode::kUpgrade) {
    begin(out, dialect, form, Script::kUpgrade, keys);
  } else {
    const bool is_read = call.mode == Mode::kRead;
    const Script exclusive = call.is_unfenced ? Script::kVote : Script::kAcquire;
    begin_turn(out, dialect, form, is_read ? Script::kAcquireRead : exclusive, keys);
  }
  out.add(call.claimant.token).add(call.lease_ms).add(call.member).add(call.ticket);
  out.add(dialect.prefix);
  if (keys.format == Format::kHash) out.add(call.claimant.owner);
  if (call.mode == Mode::kRead) out.add(call.sibling);
}

void release(Command &out, const Dialect &dialect, Form form, const LockKeys &keys,
             const Claimant &claimant, const ForeignTurn &turn, int64_t grant_count) {
  begin_turn(out, dialect, form, Script::kRelease, keys);
  out.add(claimant.token).add(dialect.prefix);
  if (keys.format == Format::kHash) out.add(claimant.owner);
  out.add(turn.burst).add(turn.window_ms).add(grant_count);
}

void track(Command &on, Command &next, Command &look, const LockKeys &keys) {
  on.add("CLIENT").add("TRACKING").add("ON").add("OPTIN");
  next.add("CLIENT").add("CACHING").add("YES");
  look.add("EXISTS").add(keys.lock);  // GET would bring whatever stands there
}

void cancel(Command &out, const Dialect &dialect, Form form, const LockKeys &keys,
            std::string_view member, std::string_view owner) {
  begin(out, dialect, form, Script::kCancel, keys).add(member).add(dialect.prefix);
  if (keys.format == Format::kHash) out.add(owner);
}

void downgrade(Command &out, const Dialect &dialect, Form form, const LockKeys &keys,
               std::string_view token, int64_t lease_ms, int64_t fence) {
  begin(out, dialect, form, Script::kDowngrade, keys).add(token).add(lease_ms);
  out.add(dialect.prefix);
  if (fence > 0) out.add(fence);
}

void kick(Command &out, const Dialect &dialect, Form form, const LockKeys &keys) {
  begin(out, dialect, form, Script::kKick, keys).add(dialect.prefix);
}

void extend(Command &out, const Dialect &dialect, Form form, const LockKeys &keys,
            std::string_view token, int64_t lease_ms, bool is_described, const HolderInfo *info) {
  if (is_described) {
    begin(out, dialect, form, Script::kExtend, keys.format, {keys.lock, keys.info});
  } else {
    begin(out, dialect, form, Script::kExtend, keys.format, {keys.lock});
  }
  out.add(token).add(lease_ms);
  if (info == nullptr) return;
  out.add("who").add(info->who).add("label").add(info->label);
  out.add("since").add(info->since_ms);
}

void extend_shared(Command &out, const Dialect &dialect, Form form, const LockKeys &keys,
                   const Claimant &claimant, int64_t lease_ms, bool is_marked) {
  if (is_marked) {
    begin(out, dialect, form, Script::kExtendShared, keys.format,
          {keys.lock, keys.readers, keys.info});
  } else {
    begin(out, dialect, form, Script::kExtendShared, keys.format, {keys.lock, keys.readers});
  }
  out.add(claimant.token).add(lease_ms);
  if (keys.format == Format::kHash) out.add(claimant.owner);
}

void detach(Command &out, const Dialect &dialect, Form form, const LockKeys &keys,
            const Claimant &claimant, int64_t count) {
  begin(out, dialect, form, Script::kDetach, keys.format, {keys.lock, keys.readers, keys.info});
  out.add(claimant.token).add(count);
  if (keys.format == Format::kHash) out.add(claimant.owner);
}

void attach(Command &out, const Dialect &dialect, Form form, const LockKeys &keys,
            std::string_view token, int64_t lease_ms, std::string_view call) {
  begin(out, dialect, form, Script::kAttach, keys.format, {keys.lock, keys.readers, keys.info});
  out.add(token).add(lease_ms).add(call);
}

void raise_fence(Command &out, const Dialect &dialect, Form form, const LockKeys &keys,
                 std::string_view token, int64_t fence) {
  begin(out, dialect, form, Script::kRaiseFence, keys.format, {keys.lock, keys.fence});
  out.add(token).add(fence);
}

void list(Command &out, const Dialect &dialect, Form form, std::string_view cursor,
          std::string_view pattern) {
  begin(out, dialect, form, Script::kList, Format::kString, {});
  out.add(cursor).add(pattern).add(256);
}

void inspect(Command &out, const Dialect &dialect, Form form, const LockKeys &keys) {
  begin(out, dialect, form, Script::kInspect, keys.format,
        {keys.lock, keys.queue, keys.fence, keys.info, keys.readers});
  out.add(256);
}

void announce(Command &out, const std::string &key, const std::string &text, int64_t expiry_ms) {
  out.add("SET").add(key).add(text).add("PX").add(expiry_ms);
}

void withdraw_name(Command &out, const std::string &key) { out.add("DEL").add(key); }

void ask_name(Command &out, const std::string &key) {
  // Never more than a name can be long: to a longer reply the connection would be given up.
  out.add("GETRANGE").add(key).add(int64_t{0}).add(kMaxNameTextBytes - 1);
}

void force_release(Command &out, const Dialect &dialect, Form form, const LockKeys &keys,
                   std::string_view token) {
  begin(out, dialect, form, Script::kForceRelease, keys).add(token).add(dialect.prefix);
}

void probe(Command &out, const Dialect &dialect, std::string_view own, std::string_view unused) {
  begin(out, dialect, Form::kText, Script::kProbe, Format::kString, {}).add(own).add(unused);
}

}  // namespace redlatch::protocol

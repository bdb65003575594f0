// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "protocol/command.h"

#include <cassert>
#include <initializer_list>

#include "protocol/answer.h"

namespace redlatch::protocol {

namespace {

Command &begin(Command &out, const ServerFeatures &features, EvalMode eval, Script script,
               Format format, size_t key_count) {
  const ScriptText &text = script_text(script, format, features.is_sharded);
  if (eval == EvalMode::kText) {
    out.add("EVAL").add(text.text());
  } else {
    out.add("EVALSHA").add(text.sha1);
  }
  return out.add(static_cast<int64_t>(key_count));
}

// The key that never exists is the last one: no script reads that place. One key alone needs no
// other: if it is absent, it is so at both nodes.
Command &begin(Command &out, const ServerFeatures &features, EvalMode eval, Script script,
               const LockKeys &keys, std::initializer_list<std::string_view> named) {
  const bool has_absent = features.is_cluster && named.size() > 1;
  begin(out, features, eval, script, keys.format, named.size() + (has_absent ? 1 : 0));
  for (const std::string_view key : named) out.add(key);
  if (has_absent) out.add(keys.absent);
  return out;
}

// .. with the key of turns, for scripts that may leave a free lock to other libraries. In a format
// with permits it is that of the cap.
Command &begin_turn(Command &out, const ServerFeatures &features, EvalMode eval, Script script,
                    const LockKeys &keys) {
  return begin(out, features, eval, script, keys,
               {keys.lock, keys.queue, keys.fence, keys.readers, keys.turn});
}

// With the keys that most scripts take.
Command &begin(Command &out, const ServerFeatures &features, EvalMode eval, Script script,
               const LockKeys &keys) {
  if (keys.traits().has_permits) return begin_turn(out, features, eval, script, keys);
  return begin(out, features, eval, script, keys,
               {keys.lock, keys.queue, keys.fence, keys.readers});
}

void add_claim(Command &out, const LockKeys &keys, std::string_view claim) {
  if (keys.traits().has_owner || keys.traits().has_permits) out.add(claim);
}

}  // namespace

void acquire(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
             const AcquireCall &call) {
  if (call.mode == Mode::kUpgrade) {
    begin(out, features, eval, Script::kUpgrade, keys);
  } else if (!call.candidate.empty()) {
    assert(call.mode == Mode::kWrite && keys.traits().has_jobs && !call.is_unfenced);
    begin(out, features, eval, Script::kAcquire, keys,
          {keys.lock, keys.queue, keys.fence, keys.readers, keys.turn, call.candidates_key});
  } else {
    const bool is_read = call.mode == Mode::kRead;
    const Script exclusive = call.is_unfenced ? Script::kVote : Script::kAcquire;
    begin_turn(out, features, eval, is_read ? Script::kAcquireRead : exclusive, keys);
  }
  out.add(call.identity.token).add(call.ttl_ms).add(call.member).add(call.ticket);
  out.add(features.prefix);
  add_claim(out, keys, call.identity.claim);
  if (call.mode == Mode::kRead) out.add(call.sibling);
  if (!call.candidate.empty()) out.add(call.candidate);
}

void release(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
             const Proof &identity, const YieldPolicy &yield_policy, int64_t grant_count,
             const Note *note) {
  if (note == nullptr) {
    begin_turn(out, features, eval, Script::kRelease, keys);
  } else {
    assert(keys.traits().has_jobs);
    begin(out, features, eval, Script::kRelease, keys,
          {keys.lock, keys.queue, keys.fence, keys.readers, keys.turn, note->key});
  }
  out.add(identity.token).add(features.prefix);
  add_claim(out, keys, identity.claim);
  if (note != nullptr) {
    out.add(note->kind == Note::Kind::kRun ? "o" : "v").add(std::string_view(note->text));
    out.add(note->number);
  }
  out.add(yield_policy.every).add(yield_policy.for_ms).add(grant_count);
}

void once_begin(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
                std::string_view mark_key, std::string_view token, const RunCall &call) {
  begin(out, features, eval, Script::kOnceBegin, keys, {keys.lock, mark_key});
  out.add(token).add(call.handoff_count).add(call.text).add(call.remembered_ms);
  out.add(call.tries).add(call.waited_ms);
}

void once_forget(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
                 std::string_view mark_key) {
  begin(out, features, eval, Script::kOnceForget, keys, {mark_key});
}

void track(Command &on, Command &next, Command &find, const LockKeys &keys) {
  on.add("CLIENT").add("TRACKING").add("ON").add("OPTIN");
  next.add("CLIENT").add("CACHING").add("YES");
  find.add("EXISTS").add(keys.lock);  // GET would transfer a value of any size
}

void cancel(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
            std::string_view member, std::string_view claim) {
  begin(out, features, eval, Script::kCancel, keys).add(member).add(features.prefix);
  add_claim(out, keys, claim);
}

void downgrade(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
               std::string_view token, int64_t ttl_ms, int64_t fence) {
  begin(out, features, eval, Script::kDowngrade, keys).add(token).add(ttl_ms);
  out.add(features.prefix);
  if (fence > 0) out.add(fence);
}

void serve_queue(Command &out, const ServerFeatures &features, EvalMode eval,
                 const LockKeys &keys) {
  begin(out, features, eval, Script::kServeQueue, keys).add(features.prefix);
}

void extend(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
            std::string_view token, int64_t ttl_ms, bool is_described, const HolderInfo *info) {
  if (is_described) {
    begin(out, features, eval, Script::kExtend, keys, {keys.lock, keys.info});
  } else {
    begin(out, features, eval, Script::kExtend, keys, {keys.lock});
  }
  out.add(token).add(ttl_ms);
  if (info == nullptr) return;
  out.add("who").add(info->who).add("label").add(info->label);
  out.add("since").add(info->since_ms);
  if (info->candidate.empty()) return;
  out.add("id").add(info->candidate).add("fence").add(info->fence);
}

void extend_shared(Command &out, const ServerFeatures &features, EvalMode eval,
                   const LockKeys &keys, const Proof &identity, int64_t ttl_ms, bool is_marked) {
  // I has a fixed place before the key that never exists. Where it holds no mark of this lease, its
  // expiry is that of K all the same.
  if (is_marked || features.is_cluster) {
    begin(out, features, eval, Script::kExtendShared, keys, {keys.lock, keys.readers, keys.info});
  } else {
    begin(out, features, eval, Script::kExtendShared, keys, {keys.lock, keys.readers});
  }
  out.add(identity.token).add(ttl_ms);
  add_claim(out, keys, identity.claim);
}

void extend_alone(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
                  std::string_view token, int64_t ttl_ms) {
  begin(out, features, eval, Script::kExtend, keys, {keys.lock}).add(token).add(ttl_ms);
}

void extend_shared_alone(Command &out, const ServerFeatures &features, EvalMode eval,
                         const LockKeys &keys, const PartCall &call) {
  const bool is_lock = call.part == Part::kLock;
  begin(out, features, eval, Script::kExtendShared, keys, {is_lock ? keys.lock : keys.readers});
  out.add(call.identity.token).add(call.ttl_ms);
  add_claim(out, keys, call.identity.claim);
  out.add(is_lock ? "k" : "r");
}

void extend_reader_key(Command &out, const std::string &key, int64_t ttl_ms) {
  out.add("SET").add(key).add("1").add("PX").add(ttl_ms);
}

void detach(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
            const Proof &identity, int64_t count) {
  begin(out, features, eval, Script::kDetach, keys, {keys.lock, keys.readers, keys.info});
  out.add(identity.token).add(count);
  add_claim(out, keys, identity.claim);
}

void attach(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
            const Proof &identity, int64_t ttl_ms, std::string_view call) {
  begin(out, features, eval, Script::kAttach, keys, {keys.lock, keys.readers, keys.info});
  out.add(identity.token).add(ttl_ms).add(call);
  add_claim(out, keys, identity.claim);
}

void raise_fence(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
                 std::string_view token, int64_t fence) {
  begin(out, features, eval, Script::kRaiseFence, keys, {keys.lock, keys.fence});
  out.add(token).add(fence);
}

void list(Command &out, std::string_view cursor, std::string_view pattern) {
  out.add("SCAN").add(cursor).add("MATCH").add(pattern).add("COUNT").add(256);
  out.add("TYPE").add("string");
}

void look(Command &out, const std::string &key) {
  // One byte more than a token, which shows that a value is longer.
  out.add("GETRANGE").add(key).add(int64_t{0}).add(static_cast<int64_t>(kTokenSize));
}

void inspect(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
             std::string_view mark_key, std::string_view candidates_key) {
  if (keys.traits().has_jobs) {
    begin(out, features, eval, Script::kInspect, keys,
          {keys.lock, keys.queue, keys.fence, keys.info, keys.readers, mark_key, candidates_key});
  } else if (keys.traits().has_permits) {
    begin(out, features, eval, Script::kInspect, keys,
          {keys.lock, keys.queue, keys.fence, keys.info, keys.readers, keys.turn});
  } else {
    begin(out, features, eval, Script::kInspect, keys,
          {keys.lock, keys.queue, keys.fence, keys.info, keys.readers});
  }
  out.add(int64_t{kMaxInfoRows});
}

void set_cap(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
             std::optional<int64_t> cap, int64_t for_ms) {
  begin(out, features, eval, Script::kSetCap, keys).add(features.prefix);
  if (!cap) {
    out.add("").add("");
  } else if (for_ms == 0) {
    out.add(*cap).add("");
  } else {
    out.add(*cap).add(for_ms);
  }
}

void get_value(Command &out, const std::string &value_key) { out.add("GET").add(value_key); }

void stats(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys) {
  begin(out, features, eval, Script::kStats, keys);
}

void announce(Command &out, const std::string &key, const std::string &text, int64_t expiry_ms) {
  out.add("SET").add(key).add(text).add("PX").add(expiry_ms);
}

void withdraw_name(Command &out, const std::string &key) { out.add("DEL").add(key); }

void ask_name(Command &out, const std::string &key) {
  // At most the longest name: a longer reply would end the connection.
  out.add("GETRANGE").add(key).add(int64_t{0}).add(kMaxNameTextBytes - 1);
}

void wait_for_replicas(Command &out, int64_t replicas, int64_t timeout_ms) {
  assert(replicas > 0 && timeout_ms > 0);
  out.add("WAIT").add(replicas).add(timeout_ms);
}

void force_release(Command &out, const ServerFeatures &features, EvalMode eval,
                   const LockKeys &keys, std::string_view token) {
  begin(out, features, eval, Script::kForceRelease, keys).add(token).add(features.prefix);
}

void recall(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
            std::string_view reason) {
  begin(out, features, eval, Script::kRecall, keys, {keys.lock, keys.readers})
      .add(features.prefix)
      .add(reason);
}

void probe(Command &out, const ServerFeatures &features, ProbeKey key, std::string_view own,
           std::string_view unused) {
  const bool has_key = key == ProbeKey::kNamed;
  begin(out, features, EvalMode::kText, Script::kProbe, Format::kString, has_key ? 1 : 0);
  if (has_key) out.add(own);
  out.add(own).add(unused);
}

}  // namespace redlatch::protocol

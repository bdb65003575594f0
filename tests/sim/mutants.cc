// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "mutants.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "all_scripts.h"
#ifdef REDLATCH_CORE_MUTANTS
#include "defect.h"
#endif

namespace redlatch::sim {

namespace {

// Texts of composed scripts, which have no comments and no indentation.
constexpr Mutant kMutants[] = {
    {"blind-delete", "RELEASE does not ask who holds", Scenario::kGeneral, true, 2,
     "if not is_mine and not is_open then",
     "is_mine = is_mine or holder ~= false\nif not is_mine and not is_open then"},
    {"short-answer", "RELEASE answers with less than was agreed", Scenario::kGeneral, true, 1,
     "return {1, 0, unnoted}", "return {1}"},
    {"extend-creates", "EXTEND brings back a lock that was gone", Scenario::kGeneral, true, 2,
     "if holder ~= token then\nreturn {type(holder) == 'string' and -1 or 0, now}\nend",
     "if holder and holder ~= token then\nreturn {0, now}\nend\n"
     "if not holder then\nredis.call('SET', K, token, 'PX', lease)\nend"},
    {"extend-any", "EXTEND does not ask who holds", Scenario::kGeneral, true, 5,
     "if holder ~= token then\nreturn {type(holder) == 'string' and -1 or 0, now}\nend",
     "if not holder then\nreturn {0, now}\nend"},
    {"extend-cuts", "a late copy of EXTEND shortens a newer lease", Scenario::kGeneral, true, 1,
     "local pttl = math.max(redis.call('PTTL', K), lease)", "local pttl = lease"},
    {"acquire-cuts", "a late copy of ACQUIRE shortens a newer lease", Scenario::kGeneral, true, 4,
     "redis.call('PEXPIRE', K, math.max(redis.call('PTTL', K), lease))",
     "redis.call('PEXPIRE', K, lease)"},
    {"no-recheck", "who queues does not look whether the lock is free", Scenario::kGeneral, true, 4,
     "local has_new_head = is_open and not window", "local has_new_head = false"},
    {"barging", "ACQUIRE takes a free lock though others wait", Scenario::kGeneral, true, 2,
     "if redis.call('EXISTS', K, Q, W) == 0 then",
     "if redis.call('EXISTS', K, W) == 0 then\n"
     "if me ~= '' then\nredis.call('ZREM', Q, me)\nend"},
    {"vote-taken", "VOTE takes a lock that another has", Scenario::kRedlock, false, 1,
     "if redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[5]) == 0 then",
     "if redis.call('EXISTS', KEYS[2], KEYS[5]) == 0 then"},
    {"vote-past", "VOTE overtakes the queue", Scenario::kRedlock, false, 44,
     "if redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[5]) == 0 then",
     "if redis.call('EXISTS', KEYS[1]) == 0 then"},
    {"long-silence", "a waiter that no message reaches keeps the lock for its provisional time",
     Scenario::kClusterMoves, false, 5, "ms = math.min(ms, 100)", "ms = ms"},
    {"dead-waiter", "a waiter without receivers is granted the lock", Scenario::kGeneral, true, 4,
     "if type(receivers) == 'table' or receivers == 0 then", "if type(receivers) == 'table' then"},
    {"no-turn", "others are left no turn where they are about", Scenario::kGeneral, true, 9,
     "if yield_every > 0 or missed <= 6 then", "if yield_every > 0 then"},
    {"taken-turn", "a turn that is left to others is taken", Scenario::kGeneral, true, 3,
     "if not holder and not window and redis.call('EXISTS', Q) == 0 then",
     "if not holder and redis.call('EXISTS', Q) == 0 then"},
    {"unannounced-provisional", "the waiter behind a provisional lease is not notified of it",
     Scenario::kHeir, false, 124, "string.format('%05d', (left < 0 or",
     "string.format('%05d', (granted > 0 or left < 0 or"},
    {"no-deadline", "a waiter is granted the lock after its wait", Scenario::kGeneral, true, 5,
     "(provisional > 0 and deadline >= now)", "(provisional > 0)"},
    {"publish-error", "an error of PUBLISH is read as: the waiter is dead", Scenario::kGeneral,
     true, 5, "if type(receivers) == 'table' then\nredis.call('ZADD', Q, head[2], member)",
     "if type(receivers) == 'table' then\nreceivers = 0\nelseif false then"},
    {"unseen-dead", "where nobody may publish, a dead waiter keeps its place", Scenario::kGeneral,
     true, 118, "if polls then\nreceivers = 1\nend\nend\nif type(receivers)",
     "if polls and type(receivers) == 'number' then\nreceivers = 1\nend\nend\nif type(receivers)"},
    {"unseen-live", "a waiter that polls is dropped, because no message reaches it",
     Scenario::kGeneral, true, 3, "if string.sub(member, 34, 34) == '+' then",
     "if string.sub(member, 34, 34) == '-' then"},
    {"moved-channel",
     "a waiter whose channel has moved to another node keeps its place, dead or not",
     Scenario::kClusterMoves, false, 13, "'access a non local key', 1, true) then\n",
     "'access a non local key', 1, true) and false then\n"},
    {"low-ticket", "a ticket after a clock step back is below the last one", Scenario::kGeneral,
     true, 5, "math.max(us, (last or 0) + 1)", "us"},
    {"late-ticket", "a late copy of a request costs its place (37ba843)", Scenario::kLate, false,
     54, "if score and (ticket == '' or tonumber(score) <= tonumber(ticket)) then",
     "if score then"},
    {"new-ticket", "whoever comes back to the queue gets a new ticket", Scenario::kGeneral, true, 2,
     "if ticket == '' then\nlocal last", "if true then\nlocal last"},
    {"plain-fence", "the fence is a count, without the time", Scenario::kGeneral, true, 3,
     "local minted = string.format('%016d', us)\n",
     "us = 0\nlocal minted = string.format('%016d', 32)\n"},
    {"outside-fence", "a hand-over leaves it to another command to count the fence",
     Scenario::kGeneral, true, 1, "local ms = is_me and tonumber(lease) or provisional\n",
     "local ms = is_me and tonumber(lease) or provisional\n"
     "if mode == 'x' and not fence then\n"
     "local last = tonumber(redis.call('GET', F) or 0)\n"
     "fence = string.format('%016d', math.max(us, last + 32))\n"
     "end\n"},
    {"endless-queue", "the queue has no expiry", Scenario::kGeneral, true, 1,
     "if queue_left < 600000 / 2 then", "if false then"},
    {"long-lease", "a lease is longer than was asked for", Scenario::kGeneral, true, 1,
     "redis.call('SET', K, token, 'PX', ms)", "redis.call('SET', K, token, 'PX', ms + 1000)"},
    {"unmarked-attach", "a lease that was not detached is attached", Scenario::kGeneral, true, 2,
     "if is_detached and at or not is_detached and at ~= 1 then", "if false then"},
    {"late-detach", "a late copy of a detach allows another attach", Scenario::kHandover, false,
     140, "if marked > count + 1 then", "if false then"},
    {"endless-lease", "a lease has no end", Scenario::kGeneral, true, 1,
     "redis.call('SET', K, token, 'PX', ms)", "redis.call('SET', K, token)"},
    // For readers and writers.
    {"upgrade-cuts", "an upgrade cuts its lease as a reader to the provisional lease",
     Scenario::kReaders, false, 1, "ms = math.max(ms, expiry - now)\n", ""},
    {"upgrade-dead", "who does not hear of its upgrade is no reader any more", Scenario::kReaders,
     false, 5,
     "redis.call('ZADD', R, expiry, token)\n"
     "if type(redis.pcall('PEXPIREAT', R, expiry)) == 'table' then\n"
     "redis.call('DEL', R)\nbreak\nend\nreaders = 1\nholder = 'rl:shared'\n",
     "holder = false\n"},
    {"upgrade-late", "one whose lease as a reader has ended is upgraded", Scenario::kReaders, false,
     5, "if readers > 0 and redis.call('ZSCORE', R, token) then\ncan_have = readers == 1\nend",
     "can_have = readers == 0 or (readers == 1 and redis.call('ZSCORE', R, token) ~= false)\n"
     "if readers == 0 then\nredis.call('ZADD', R, now, token)\nend"},
    {"upgrade-twice", "a late copy of an upgrade has a place beside the next one",
     Scenario::kUpgrades, false, 246,
     "string.sub(first, 1, 33) == mine and (me ~= '' or readers < 2) then", "false then"},
    {"dead-blocks", "a dead writer at the head keeps readers out", Scenario::kReaders, false, 11,
     "if receivers ~= 0 then\nflags = type(receivers) == 'table' and 2 or 0\nbreak\nend",
     "flags = type(receivers) == 'table' and 2 or 0\nbreak"},
    {"first-expiry", "a shared lock ends with the first of its readers", Scenario::kReaders, false,
     1,
     "local latest = redis.call('ZRANGE', R, -1, -1, 'WITHSCORES')[2]\n"
     "redis.call('SET', K, holder, 'PXAT', latest)",
     "local latest = redis.call('ZRANGE', R, 0, 0, 'WITHSCORES')[2]\n"
     "redis.call('SET', K, holder, 'PXAT', latest)"},
    {"overtaking-reader", "a reader overtakes a waiting writer", Scenario::kReaders, false, 1,
     "(is_open and not window and redis.call('EXISTS', Q) == 0)", "(is_open and not window)"},
    {"writer-joins", "a writer is granted the lock while readers have it", Scenario::kReaders,
     false, 1, "local can_have = not holder\nif mode == 's' then",
     "local can_have = not holder or readers > 0\nif mode == 's' then"},
    {"quiet-downgrade", "a writer that becomes a reader lets nobody in", Scenario::kReaders, false,
     1,
     "lease = nil\nlocal check = string.sub(redis.sha1hex(K), 1, 8)\n"
     "local granted, own, looked, flags = 0, nil, 0, 0\n"
     "local is_written, may_write, silent = false, false, nil\nwhile true do",
     "lease = nil\nlocal check = string.sub(redis.sha1hex(K), 1, 8)\n"
     "local granted, own, looked, flags = 0, nil, 0, 0\n"
     "local is_written, may_write, silent = false, false, nil\nwhile false do"},
    {"reader-returns", "an extension brings back a reader that was gone", Scenario::kReaders, false,
     5,
     "if not is_mine then\nreturn {type(holder) == 'string' and -1 or 0, now}\nend\nif readers > 0 "
     "then",
     "if not is_mine and readers == 0 then\nreturn {0, now}\nend\nif readers > 0 then"},
    {"stale-readers", "readers of a lock that is gone come back with the next one",
     Scenario::kReaders, false, 777,
     "if not holder then\nredis.call('DEL', R)\nend\nreaders = readers +", "readers = readers +"},
    // For owners that hold more than once.
    {"owner-joins", "another owner joins", Scenario::kReentrant, false, 1,
     "local can_have = not holder or (readers > 0 and holder == owner)",
     "local can_have = not holder or readers > 0"},
    {"stale-count", "the count keeps what has ended by itself", Scenario::kReentrant, false, 2,
     "redis.call('ZREMRANGEBYSCORE', R, '-inf', now)\nlocal first", "local first"},
    {"high-count", "the count never falls", Scenario::kReentrant, false, 1,
     "redis.call('HSET', K, holder, readers)",
     "redis.call('HSET', K, holder, math.max(readers, tonumber(redis.call('HGET', K, holder)) or "
     "0))"},
    {"resent-release", "a release that is repeated frees the outer hold", Scenario::kReentrant,
     false, 2,
     "return {-1, now, 0}\nend\nlocal was_writer = is_mine and readers == 0\nif is_mine then\n"
     "readers = readers - redis.call('ZREM', R, token .. owner)",
     "if holder ~= owner then\nreturn {-1, now, 0}\nend\nend\nlocal was_writer = false\n"
     "if is_mine or holder == owner then\nredis.call('ZREM', R, token .. owner)\n"
     "readers = readers - 1"},
    {"hash-no-token", "whose hold an owner extends is not looked at", Scenario::kReentrant, false,
     1, "redis.call('ZSCORE', R, token .. owner) ~= false", "true"},
    // For permits.
    {"extra-permits", "who waits gets permits beyond the limit", Scenario::kPool, false, 1,
     "and used + permits <= math.min(limit, cap or limit)\nis_passed", "\nis_passed"},
    {"uncounted-permits", "ACQUIRE does not count the permits that are out", Scenario::kPool, false,
     1,
     "if is_open and used + permits <= math.min(limit, cap or limit) and\n"
     "redis.call('EXISTS', Q) == 0 then",
     "if is_open and redis.call('EXISTS', Q) == 0 then"},
    {"overtaking-permits", "a request for few permits overtakes one for many", Scenario::kPool,
     false, 1,
     "if is_open and used + permits <= math.min(limit, cap or limit) and\n"
     "redis.call('EXISTS', Q) == 0 then",
     "if is_open and used + permits <= math.min(limit, cap or limit) then"},
    {"capless-permits", "the cap does not count for who waits", Scenario::kPool, false, 1,
     "used + permits <= math.min(limit, cap or limit)\nis_passed",
     "used + permits <= tonumber(limit)\nis_passed"},
    {"forgotten-holder", "the only holder is lost where a second one comes", Scenario::kPool, false,
     1, "redis.call('ZADD', R, now + ms, alone)\n", ""},
    {"unkept-holder", "EXTEND says that the only holder has more time, and gives none",
     Scenario::kPool, false, 39,
     "== entry then\nredis.call('PEXPIRE', K, math.max(redis.call('PTTL', K), lease))\n",
     "== entry then\n"},
    {"stale-permits", "the number in the key keeps what has ended by itself", Scenario::kPool,
     false, 6, "if holder and #ended > 0 then", "if false then"},
    {"kept-permits", "a release does not give its permits back", Scenario::kPool, false, 1,
     "readers, used = readers - 1, used - permits", "readers = readers - 1"},
    {"blocking-wish", "who wants more than the cap blocks those behind it", Scenario::kPool, false,
     1, "is_passed = cap and cap > 0 and tonumber(permits) > cap", "is_passed = false"},
    {"displaced-wish", "who wants more than the cap loses its place", Scenario::kPool, false, 1,
     "if not was_given and not is_kept then", "if not was_given then"},
    {"unasked-head", "a release does not find out that the head is dead", Scenario::kPool, false,
     11, "local is_head_told = false\nyield_every, there = 0, 2",
     "local is_head_told = true\nyield_every, there = 0, 2"},
    {"shared-fence", "a repetition answers with the fence of another grant", Scenario::kPool, false,
     1, "fence = last and string.format('%016d', last)\nend\nfence = nil",
     "fence = last and string.format('%016d', last)\nend"},
    {"hasty-wish", "who waits behind others asks again and again", Scenario::kPool, false, 49,
     "if me == '' or rank == 0 then", "if true then"},
    {"second-run", "a run begins though one has succeeded in the period", Scenario::kJobs, false, 1,
     "elseif state == 'd' and (till > now or since > now - ARGV[6]) then",
     "elseif state == 'd' and since > now - ARGV[6] then"},
    {"endless-tries", "failures use up no tries", Scenario::kJobs, false, 1,
     "if tries >= tonumber(ARGV[5]) then", "if false then"},
    {"moved-period", "a period begins anew with each try", Scenario::kJobs, false, 1,
     "tries, ends = tonumber(tried), till", "tries = tonumber(tried)"},
    {"unseen-success", "a success is not noted", Scenario::kJobs, false, 1,
     "string.format('d %.0f %s %s %s', now", "string.format('r %.0f %s %s %s', now"},
    {"lost-waiter", "who waits for the lock leaves the queue when a value comes", Scenario::kJobs,
     false, 1, "if string.sub(member, 33, 33) == 'v' and", "if"},
    {"unknown-leader", "the id of a candidate is not noted", Scenario::kElections, false, 1,
     "if type(redis.pcall('HSET', E, token, id)) == 'number' and", "if false and"},
    {"other-leader", "who leads is shown by the id of the first waiter", Scenario::kElections,
     false, 1, "local token = i > 0 and string.sub(waiters[i], 1, 32) or value",
     "local token = waiters[1] and string.sub(waiters[1], 1, 32) or value"},
#ifdef REDLATCH_CORE_MUTANTS
#include "core_mutants.inc"
#endif
};

bool is_in_a_script(std::string_view text) {
  bool is_found = false;
  for_each_script([&](protocol::Script, protocol::Format, const protocol::ScriptText &script) {
    is_found = is_found || script.text().find(text) != std::string_view::npos;
  });
  return is_found;
}

}  // namespace

std::span<const Mutant> mutants() { return kMutants; }

const Mutant *mutant_of(std::string_view name) {
  const auto *found = std::find_if(std::begin(kMutants), std::end(kMutants),
                                   [&](const Mutant &mutant) { return mutant.name == name; });
  return found == std::end(kMutants) ? nullptr : found;
}

std::string mutated(std::string_view text, const Mutant *mutant) {
  std::string result(text);
  if (mutant == nullptr || !mutant->is_of_script()) return result;
  for (size_t at = 0; (at = result.find(mutant->before, at)) != std::string::npos;) {
    result.replace(at, mutant->before.size(), mutant->after);
    at += mutant->after.size();
  }
  return result;
}

const Mutant *outdated_mutant() {
  const auto *found = std::find_if(
      std::begin(kMutants), std::end(kMutants),
      [](const Mutant &mutant) { return mutant.is_of_script() && !is_in_a_script(mutant.before); });
  return found == std::end(kMutants) ? nullptr : found;
}

void switch_on([[maybe_unused]] const Mutant *mutant) {
#ifdef REDLATCH_CORE_MUTANTS
  // The mutants of the engine and the quorum are at the end of the list.
  const auto is_of_engine = [](const Mutant &other) { return !other.is_of_script(); };
  const auto *first = std::find_if(std::begin(kMutants), std::end(kMutants), is_of_engine);
  defect = mutant != nullptr && is_of_engine(*mutant) ? static_cast<int>(mutant - first) : -1;
#endif
}

}  // namespace redlatch::sim

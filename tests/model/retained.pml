// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Retained locks as a model for Spin: local acquisitions, recalls, tries that wait for a recall,
// the lease's end, force release. test_model.py says which properties hold, and that each of the
// defects below (NO_...) breaks one. Where the properties are checked: `assert`.
//
// What stands for what:
//   proctype server     core/protocol/scripts: acquire, fragments/recall_holder and mint_block,
//                       extend, release, cancel, force_release
//   proctype engine     core/lock: phases WAIT (kAsking, kQueued), HELD, KEPT (kRetained), LEAVE
//                       (kCleanup), IDLE (no hold); Retention is may_keep and keep_left
//   proctype network    lost and forged messages; connections
//   proctype clock      time, of the two kinds of grant.pml: at any moment, or TIMELY
//
// A lock with `retain` may also be released at once. So each release has the choice, and the pause
// after a recall needs no state. A recall carries the id of the acquisition it means; a repeated,
// late or forged one is a message with any id at any moment (FORGED).
//
// Numbers. Fences matter only by their order, as in grant.pml. A block has BLOCK fences. A client
// has two tokens, and uses one again only when no trace of it is left. With that, and as time is
// what remains of it, all is finite: only faults are bounded, and unless TIMELY also ACQUIRES and
// TICKS.
//
// Left out, and why nothing that is checked depends on it: what grant.pml checks (provisional
// leases, tickets, messages to the next head, old copies of requests, the caller's write at a
// resource); crashes, which are pauses without an end here; local waiters and local hand-off (no
// message); users' recalls (nothing depends on them).

#ifndef N
#define N 2                     // clients
#endif
#ifndef LEASE
#define LEASE 2
#endif
#ifndef RETAIN
#define RETAIN 1
#endif
#ifndef BLOCK
#define BLOCK 2                 // fences that a client may give to local acquisitions
#endif
#ifndef FAULTS
#define FAULTS 0
#endif
#ifndef FORCES
#define FORCES 0
#endif
#ifndef ACQUIRES
#define ACQUIRES 0              // at the server, in all; 0: any number
#endif
#ifndef TICKS
#define TICKS 3
#endif
#ifndef OLD
#define OLD N                   // the client of a build without recalls; N: none
#endif
#ifdef TIMELY
#define is_timely true
#else
#define is_timely false
#endif
#ifdef LOOP
#define is_loop true            // TIMELY: callers take a retained lock at once
#else
#define is_loop false
#endif
#define WORK 1                  // ticks that a caller uses the lock, if any

#define TOKENS (2 * N)
#define TOKEN(c, r) (2 * (c) + (r) + 1)
#define OWNER(t) (((t) - 1) / 2)
#define RID(t) (((t) - 1) % 2)

mtype = {IDLE, WAIT, HELD, KEPT, LEAVE};                   // phases
mtype = {LIVE, DEAD, HALF};                                // what PUBLISH finds: see `cut`
mtype = {NONE, TRY, ACQUIRE, EXTEND, CANCEL, RELEASE};     // requests
mtype = {NO, HEARD, YES, FREE};     // answers. HEARD: the holder's client got a recall; FREE: the
                                    // lock was free and without waiters, so it may be retained

// ---- the server --------------------------------------------------------------------------------
byte holder, left;              // K: a token, or 0; ticks until it expires
byte fence;                     // F
byte queue[N];                  // tokens, the head first; 0: no more

// ---- clients -----------------------------------------------------------------------------------
typedef Client {
  mtype phase = IDLE;
  mtype line = LIVE;            // the subscription, as the server sees it
  bit rid;
  mtype ask = NONE, answer = NONE;                    // the request in flight
  byte ask_left, ask_fence, ask_poll;
  bit is_cancel_due, is_release_due;
  bit has_push, push_rid; byte push_left, push_fence; // a grant on its way
  bit has_recall, recall_rid;                         // a recall on its way
  byte belief;                  // ticks until the deadline of the lease
  byte fence, last;             // of the acquisition, and of the last one before the next call
  bit may_keep, is_recalled;
  byte keep_left;               // ticks, from the grant of the server
  bit is_try, is_recalling;     // the caller does not wait; .. but for a recall
  byte poll, work, wait;        // TIMELY: ticks until the next poll, ...
  // For properties:
  bit is_idle_seen;             // its try met a lock that was only retained
  bit is_forced;                // force release has taken the lock
  bit is_unheard;               // .. and its recall is lost, though the connection is not
}
Client client[N];

// ---- the bounds of a run
byte faults = FAULTS, forces = FORCES;
byte acquires = (ACQUIRES > 0 -> ACQUIRES : 1), ticks = (is_timely -> 0 : TICKS);

// ---- what the properties look at
byte last_owner, last_fence;    // of the lock; the highest fence that a caller got
bit is_overtaken;               // a local acquisition has begun since a waiter was queued
byte debt;                      // TIMELY: ticks that the faults so far may cost waiters
// Their names stand in Spin's report.
hidden byte fresh_fence, one_believer, idle_is_paid, waiter_is_served, busy_is_true,
  dead_grant_ends;

#define me client[c]
#define mine TOKEN(c, me.rid)
#define believes(x) (client[x].phase == HELD && client[x].belief > 0 && !client[x].is_forced)
// With cuts, a grant from before the force release may be read after it: see `leave`.
#ifdef CUTS
#define FORCE_COST (LEASE + 2)
#else
#define FORCE_COST 0
#endif
#define pay(ticks) faults--; debt = debt + (is_timely -> (ticks) : 0)
#define down(x) x = x - (x > 0)

// No caller has the lock, and its client does not know yet that it is wanted.
#define is_recall_due(x) (client[x].has_recall && client[x].recall_rid == client[x].rid)
#define is_idle (holder > 0 && client[OWNER(holder)].phase == KEPT && \
  !is_recall_due(OWNER(holder)))

#include "retained_scripts.pml"

// ---- the server's side of one connection -------------------------------------------------------

inline push_grant() {
  if
  :: client[OWNER(pushed)].line == LIVE ->
    if
    :: client[OWNER(pushed)].has_push = 1; client[OWNER(pushed)].push_rid = RID(pushed);
      client[OWNER(pushed)].push_left = LEASE; client[OWNER(pushed)].push_fence = fence
    :: faults > 0 -> pay(LEASE + 2)                   // lost
    fi
  :: else
  fi
}

// Also by force release.
inline push_recall() {
  if
  :: client[OWNER(recalled)].line == LIVE ->
    if
    // One that is not read yet is of an earlier acquisition, or says the same.
    :: client[OWNER(recalled)].has_recall = 1; client[OWNER(recalled)].recall_rid = RID(recalled)
    :: faults > 0 -> pay(RETAIN + WORK + 1);          // lost
      client[OWNER(recalled)].is_unheard = 1
    fi
  :: else
  fi
}

proctype server(byte c) {
  do
  :: atomic { me.ask != NONE && me.answer == NONE ->
      d_step { kind = me.ask; token = mine;
        me.is_idle_seen = kind == TRY && is_idle && queue[0] == 0;
        run_script(); write_answer(); skip }
      if :: recalled > 0 -> push_recall() :: else fi;
      if :: pushed > 0 -> push_grant() :: else fi;
      d_step { recalled = 0; pushed = 0; close_gaps_of_fences(); skip }
    }
  od
}

proctype operator() {
  do
  :: atomic { forces > 0 && holder > 0 ->
      forces--; debt = debt + (is_timely -> FORCE_COST : 0);
      d_step { force_release(); skip }
      if :: recalled > 0 -> push_recall() :: else fi;
      if :: pushed > 0 -> push_grant() :: else fi;
      d_step { recalled = 0; pushed = 0; close_gaps_of_fences(); skip }
    }
  od
}

// ---- one client --------------------------------------------------------------------------------
// Nothing is left of a token, so that it may be used for another acquisition.
#define is_unused(t) (holder != t && !is_queued(t) && \
  !(client[OWNER(t)].has_push && client[OWNER(t)].push_rid == RID(t)) && \
  !(client[OWNER(t)].has_recall && client[OWNER(t)].recall_rid == RID(t)))

#define is_extend_due (!is_timely || me.belief <= LEASE / 2)

inline ask_again() {
  if
  :: me.ask == NONE && me.line == LIVE ->
    me.ask = (me.is_try && !me.is_recalling -> TRY : ACQUIRE); me.ask_left = LEASE
  :: else
  fi
}

// The only places where a client begins to believe, or continues to.
inline believe(ticks) {
  me.belief = ticks;
  one_believer = true;
  for (i : 0 .. N - 1) { one_believer = one_believer && (i == c || me.is_forced || !believes(i)) }
  assert(one_believer)
}

#define drop_hold() me.belief = 0; me.fence = 0; me.last = 0; me.may_keep = 0; me.is_recalled = 0; \
  me.keep_left = 0; me.poll = 0; me.work = 0; me.wait = 0; me.is_try = 0; me.is_recalling = 0
#define drop_push() me.has_push = 0; me.push_rid = 0; me.push_left = 0; me.push_fence = 0
#define drop_recall() me.has_recall = 0; me.recall_rid = 0
#define drop_ask() me.ask = NONE; me.answer = NONE; me.ask_left = 0; me.ask_fence = 0; \
  me.ask_poll = 0

inline begin_work() {
  if
  :: true
  :: is_timely -> me.work = WORK
  fi
}

inline enter(ticks, its_fence, its_last, is_free) {
  fresh_fence = me.is_forced || its_fence >= last_fence;
  assert(fresh_fence);
  if :: !me.is_forced -> last_fence = its_fence :: else fi;
  me.fence = its_fence;
  me.may_keep = is_free && !me.is_recalled && c != OLD;
  me.last = (me.may_keep -> its_last : 0);
  me.keep_left = (me.may_keep && RETAIN + (ticks) > LEASE -> RETAIN + (ticks) - LEASE : 0);
  me.poll = 0; me.wait = 0; me.is_try = 0; me.is_recalling = 0;
  me.phase = HELD;
  believe(ticks);
  begin_work()
}

// After a force release, an ACQUIRE that was on its way may have queued the token again. The engine
// gives back the next grant, as one that it does not know; here that grant ends by itself.
inline leave(with_cancel, with_release) {
  drop_hold();
  me.phase = LEAVE;
  me.is_cancel_due = me.is_cancel_due || with_cancel;
  me.is_release_due = me.is_release_due || with_release
}

inline be_idle() {
  drop_hold();
  me.phase = IDLE; me.rid = 0; me.is_cancel_due = 0; me.is_release_due = 0;
  me.is_idle_seen = 0; me.is_forced = 0; me.is_unheard = 0
}

// The caller of a try is answered.
inline answer_busy(was_idle) {
  busy_is_true = !is_timely || debt > 0 || me.is_forced || !(was_idle);
  assert(busy_is_true)
}

#ifdef NO_LIMIT
#define is_keep_over false
#else
#define is_keep_over (me.keep_left == 0)
#endif
#ifdef NO_VALIDITY
#define is_valid true
#define taken_validity LEASE
#define is_kept_over is_keep_over
#else
#define is_valid (me.belief >= (LEASE + 1) / 2)
#define taken_validity me.belief
#define is_kept_over (is_keep_over || me.belief == 0)
#endif

#define may_keep_now (me.may_keep && !is_keep_over && me.line == LIVE)

// A local acquisition.
inline take() {
  if :: queue[0] > 0 && !is_recall_due(c) -> is_overtaken = 1 :: else fi;
  // Not from a grant that force release has taken, once its recall is read.
  dead_grant_ends = !me.is_forced || holder == mine || me.is_unheard || me.line != LIVE ||
    is_recall_due(c);
  assert(dead_grant_ends);
#ifndef NO_FENCE
  me.fence++;
#endif
  fresh_fence = me.is_forced || me.fence > last_fence;
  assert(fresh_fence);
  if :: !me.is_forced -> last_fence = me.fence :: else fi;
#ifdef NO_CAP
  me.keep_left = RETAIN;
#endif
  me.phase = HELD;
  believe(taken_validity);
  begin_work()
}

inline on_recall() {
#ifdef NO_CROSSING
  // Only what is granted by then is recalled.
  if :: me.phase == HELD -> me.is_recalled = 1; me.may_keep = 0 :: else fi;
#else
  if :: me.phase == WAIT || me.phase == HELD -> me.is_recalled = 1; me.may_keep = 0 :: else fi;
#endif
#ifdef NO_USE
  if :: me.phase == HELD && me.ask == NONE && me.line == LIVE -> me.ask = RELEASE :: else fi;
#endif
#ifndef NO_RECALL
  if :: me.phase == KEPT -> leave(0, 1) :: else fi;
#endif
  skip
}

proctype engine(byte c) {
  do
  :: atomic { acquires > 0 && me.phase == IDLE && me.line == LIVE &&
      (is_unused(TOKEN(c, 0)) || is_unused(TOKEN(c, 1))) ->
      acquires = acquires - (ACQUIRES > 0); me.rid = !is_unused(TOKEN(c, 0));
      if :: last_owner == mine -> last_owner = 0 :: else fi;
      me.phase = WAIT;
      if
      :: true
      :: c != OLD -> me.is_try = 1
      fi;
      ask_again()
    }
  :: atomic { me.phase == WAIT && me.ask == NONE && me.line == LIVE && me.poll == 0 ->
      ask_again() }
  // on_acquire_reply
  :: atomic { (me.ask == ACQUIRE || me.ask == TRY) && (me.answer == NO || me.answer == HEARD) ->
      if
      :: me.phase == WAIT && me.ask == ACQUIRE -> me.poll = me.ask_poll; drop_ask()
#ifndef NO_PATIENCE
      // await_recall: the try is queued.
      :: me.phase == WAIT && me.ask == TRY && me.answer == HEARD ->
        drop_ask(); me.is_recalling = 1; me.wait = is_timely; ask_again()
      :: me.phase == WAIT && me.ask == TRY && me.answer == NO ->
        drop_ask(); answer_busy(me.is_idle_seen); be_idle()
#else
      :: me.phase == WAIT && me.ask == TRY -> drop_ask(); answer_busy(me.is_idle_seen); be_idle()
#endif
      :: else -> drop_ask()
      fi
    }
  :: atomic { (me.ask == ACQUIRE || me.ask == TRY) && (me.answer == YES || me.answer == FREE) ->
      if
      :: me.phase == WAIT && me.ask_left > 0 ->
        enter(me.ask_left, me.ask_fence, me.ask_fence + BLOCK - 1, me.answer == FREE);
        drop_ask()
      :: me.phase == WAIT && me.ask_left == 0 -> drop_ask(); ask_again()
      :: me.phase == LEAVE -> me.is_release_due = 1; drop_ask()
      :: else -> drop_ask()
      fi
    }
  // on_grant_push
  :: atomic { me.has_push ->
      if
      :: me.push_rid == me.rid && me.phase == LEAVE -> me.is_release_due = 1; drop_push()
      :: me.push_rid == me.rid && me.phase == WAIT && me.push_left > 0 ->
#ifdef NO_EVIDENCE
        enter(me.push_left, me.push_fence, me.push_fence, true);
#else
        enter(me.push_left, me.push_fence, 0, false);
#endif
        drop_push()
      :: me.push_rid == me.rid && me.phase == WAIT && me.push_left == 0 -> drop_push(); ask_again()
      :: else -> drop_push()
      fi
    }
  // on_recall_push
  :: atomic { me.has_recall ->
      if :: me.recall_rid == me.rid -> on_recall() :: else fi;
      drop_recall()
    }
  // The caller of a try waits no longer.
  :: atomic { me.phase == WAIT && me.is_recalling && me.wait == 0 ->
      answer_busy(is_idle); leave(1, 0) }
  // HELD
  :: atomic { me.phase == HELD && me.belief > 0 && me.ask == NONE && me.line == LIVE &&
      is_extend_due -> me.ask = EXTEND; me.ask_left = LEASE }
  :: atomic { me.ask == EXTEND && me.answer != NONE ->
      if
      :: me.phase == HELD && me.answer == YES && me.belief > 0 && me.ask_left > me.belief ->
        believe(me.ask_left); drop_ask()
      :: (me.phase == HELD || me.phase == KEPT) && me.answer == NO ->
        drop_ask();
        be_idle()
      :: else -> drop_ask()
      fi
    }
  :: atomic { me.phase == HELD && me.belief == 0 -> leave(0, 1) }
  :: atomic { me.phase == HELD && me.belief > 0 && me.work == 0 ->
      if
      :: may_keep_now -> me.phase = KEPT
      :: !is_loop || !may_keep_now -> leave(0, 1)
      fi
    }
  // KEPT
  :: atomic { me.phase == KEPT && !is_keep_over && is_valid && me.fence < me.last -> take() }
  // The caller's acquisition follows behind the release.
  :: atomic { me.phase == KEPT && is_kept_over -> leave(0, 1) }
  :: atomic { me.phase == KEPT && !(is_valid && me.fence < me.last) -> leave(0, 1) }
  // LEAVE
  :: atomic { me.phase == LEAVE && me.ask == NONE && me.line == LIVE ->
      if
      :: me.is_cancel_due -> me.ask = CANCEL
      :: !me.is_cancel_due && me.is_release_due -> me.ask = RELEASE
      :: else -> be_idle()
      fi
    }
  :: atomic { me.ask == CANCEL && me.answer != NONE ->
      me.is_cancel_due = 0; me.is_release_due = me.is_release_due || me.answer == YES;
      drop_ask()
    }
  :: atomic { me.ask == RELEASE && me.answer != NONE -> me.is_release_due = 0; drop_ask() }
  // The client notices that the connection was lost, and has the next.
  :: atomic { me.line != LIVE ->
      me.line = LIVE;
      if
      :: me.phase == WAIT -> ask_again()
#ifndef NO_CUT_END
      :: me.phase == KEPT -> leave(0, 1)
#endif
      :: me.phase == HELD -> me.may_keep = 0
      :: else
      fi
    }
  od
}

// ---- what fails --------------------------------------------------------------------------------

// Answers and messages are lost with the connection, and a request that has not run.
inline cut() {
  drop_ask(); drop_push(); drop_recall();
  if
  :: me.line = DEAD         // the server knows
  :: me.line = HALF         // the server counts a receiver that reads nothing
  fi
}

proctype network(byte c) {
  do
#ifdef CUTS
  :: atomic { faults > 0 && me.line == LIVE && me.phase != IDLE ->
      pay(LEASE + RETAIN + WORK + 2); cut() }
#endif
#ifdef FORGED
  :: atomic { faults > 0 && me.line == LIVE && me.phase != IDLE && !me.has_recall ->
      pay(0); me.has_recall = 1;
      if
      :: me.recall_rid = 0
      :: me.recall_rid = 1
      fi
    }
#endif
  :: false
  od
}

// ---- time --------------------------------------------------------------------------------------

inline tick() {
  down(left);
  if :: left == 0 -> holder = 0 :: else fi;
  for (i : 0 .. N - 1) {
    down(client[i].belief); down(client[i].ask_left); down(client[i].push_left);
    down(client[i].keep_left); down(client[i].poll); down(client[i].work); down(client[i].wait)
  }
}

#ifdef NO_LIMIT
#define is_kept_due(x) (client[x].belief == 0)
#else
#define is_kept_due(x) (client[x].keep_left == 0 || client[x].belief == 0)
#endif
#define is_busy(x) (client[x].ask != NONE || client[x].line != LIVE || client[x].has_push || \
  client[x].has_recall || client[x].phase == LEAVE || \
  (client[x].phase == WAIT && \
    (client[x].poll == 0 || (client[x].is_recalling && client[x].wait == 0))) || \
  (client[x].phase == HELD && (client[x].belief <= LEASE / 2 || client[x].work == 0)) || \
  (client[x].phase == KEPT && (is_loop || is_kept_due(x))))

hidden byte is_anybody_busy, is_anybody_waiting, is_anybody_working;

active proctype clock() {
  do
  :: d_step { ticks > 0 -> ticks--; tick(); skip }
  :: d_step { is_timely ->
      is_anybody_busy = false; is_anybody_waiting = false; is_anybody_working = false;
      for (i : 0 .. N - 1) {
        is_anybody_busy = is_anybody_busy || is_busy(i);
        is_anybody_waiting = is_anybody_waiting || client[i].phase == WAIT;
        is_anybody_working = is_anybody_working || client[i].phase == HELD
      }
      if
      :: is_anybody_busy
      :: else ->
        if
        :: is_anybody_waiting && !is_anybody_working ->
          idle_is_paid = debt > 0; assert(idle_is_paid); down(debt)
        :: is_anybody_waiting && is_anybody_working && is_overtaken ->
          waiter_is_served = debt > 0; assert(waiter_is_served); down(debt)
        :: else
        fi;
        tick()
      fi;
      skip            // Spin needs a plain statement at the end of a `d_step`
    }
  od
}

init {
  byte j;
  atomic {
    for (j : 0 .. N - 1) { run server(j); run engine(j); run network(j) }
    run operator()
  }
}

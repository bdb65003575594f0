// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The grant protocol as a model for Spin: queue, hand-off by a push, late grant, claim, poll net.
// test_model.py says which properties hold, in which of the two kinds of time, and that each of
// the defects below (NO_...) breaks one. Where the properties are checked: `assert`.
//
// What stands for what:
//   ACQUIRE, EXTEND, RELEASE, CANCEL, GRANT, TELL    core/protocol/scripts, and fragments
//   proctype server     the scripts, each in one step, as the server runs them (scripts.pml)
//   proctype engine     core/lock: ask, on_granted, on_queued, on_grant_push, extend, leave,
//                       lose; phases WAIT (kAsking, kQueued), HELD, LEAVE, IDLE (no hold); and the
//                       caller's thread, which checks its lease and then writes to the resource
//   proctype network    what fails: connections, hosts, processes; old copies of requests
//   proctype clock      time
//
// Time. All durations are what is left of them and count down together, so that the same moment
// reached at another time is the same state. A client that knows its clock offset
// (timing/clock_offset.h) takes a grant as no longer than it is; the worst is an exact offset. The
// clocks' rates are equal: the drift margin is arithmetic, which tests/unit and the simulation
// check. There are two kinds of time:
//   default    the clock may run at any moment, as far ahead as it likes: every process is paused
//              anywhere, every message takes any time. A waiter may poll at any moment.
//   TIMELY     time passes only when nobody who lives has anything to do, so that waiting can be
//              measured; pauses are faults.
//
// Numbers. Fences and tickets matter only by their order: what nobody remembers is taken out of
// the numbering. A client has two tokens, and uses one again only when no trace of it is left.
//
// Bounds: N clients, ACQUIRES in all, CANCELS, FAULTS, and TICKS unless TIMELY. Within them the
// search is exhaustive.
//
// Left out, and why nothing that is checked depends on it: readers, upgrades, the hash format
// (other scripts); overdue waiters (dropped like dead ones, and then CANCEL); the bound on entries
// per script and SERVE QUEUE (more entries than there are here); passing on inside a client (no
// message); errors of PUBLISH and out of memory (tests/scripts); foreign holders. A client has one
// request in flight: what the engine sends behind it runs behind it, as if it had been sent later.
// A push may overtake an answer, which is more than a connection does; a second push for a client
// that has not read the first replaces it or is lost, either way; if TIMELY, only the former.

#ifndef N
#define N 2                     // clients
#endif
#ifndef LEASE
#define LEASE 2
#endif
#ifndef CLAIM
#define CLAIM 1
#endif
#ifndef ACQUIRES
#define ACQUIRES 2              // in all
#endif
#ifndef TICKS
#define TICKS 3
#endif
#ifndef CANCELS
#define CANCELS 0
#endif
#ifndef FAULTS
#define FAULTS 0
#endif
#ifdef TIMELY
#define is_timely true
#else
#define is_timely false
#endif
#ifdef NO_CLAIM
#define CLAIMED LEASE           // how long a grant is valid at first
#else
#define CLAIMED CLAIM
#endif

#define TOKENS (2 * N)
#define TOKEN(c, r) (2 * (c) + (r) + 1)
#define OWNER(t) (((t) - 1) / 2)
#define RID(t) (((t) - 1) % 2)

mtype = {IDLE, WAIT, HELD, LEAVE, GONE};              // phases; GONE: the process is dead
mtype = {LIVE, DEAD, HALF};                           // what PUBLISH finds: see `cut`
mtype = {NONE, ACQUIRE, EXTEND, CANCEL, RELEASE};     // requests
mtype = {NO, YES};                                    // answers: the token holds K, or not

// ---- the server: keys K, F, Q ------------------------------------------------------------------
byte holder, left;              // K: a token, or 0; ticks until it expires
byte fence;                     // F
byte score[TOKENS + 1];         // Q: ticket of a queued token, or 0

// ---- clients -----------------------------------------------------------------------------------
typedef Client {
  mtype phase = IDLE;
  mtype line = LIVE;            // the subscription, as the server sees it; LIVE: connected
  bit rid;
  byte ticket;                  // as far as known
  mtype ask = NONE, answer = NONE;                              // the request in flight
  byte ask_left, ask_ticket, ask_fence, ask_poll;               // of ACQUIRE, EXTEND
  bit is_cancel_due, is_release_due;
  bit has_push, push_rid; byte push_left, push_fence;           // a grant on its way
  byte belief;                  // ticks until the deadline of the lease
  byte fence;                   // of the lease
  bit is_writing; byte write_fence; bit write_rid;              // checked, and not yet written
  mtype late = NONE; byte late_token, late_ticket;              // an old copy of a request
  byte poll, work, pause;       // TIMELY: ticks until the next poll, the end of the work, ...
  byte told;                    // the first ticket that it was told (for a property)
  bit is_displaced;             // by an old copy (for a property)
}
Client client[N];

// ---- the bounds of a run
byte acquires = ACQUIRES, cancels = CANCELS, faults = FAULTS;
byte ticks = (is_timely -> 0 : TICKS);

// ---- what the properties look at ---------------------------------------------------------------
byte resource_fence, resource_token;    // the last write that the resource accepted
byte last_owner, last_fence;            // of the lock
bit is_asked[TOKENS + 1];               // an ACQUIRE has run for which nothing was granted yet
byte debt;                              // TIMELY: ticks that the faults so far may leave us idle
#ifdef NO_SAME_MEMBER
bit is_twice[TOKENS + 1];               // stands in the queue once more
#endif
// Their names stand in Spin's report.
hidden byte fresh_fence, one_believer, no_stale_write, granted_once, served_in_order, idle_is_paid;

#define me client[c]
#define mine TOKEN(c, me.rid)
#define is_up(x) (client[x].line == LIVE && client[x].phase != GONE)
#define believes(x) (client[x].phase == HELD && client[x].belief > 0)
#define pay(ticks) faults--; debt = debt + (is_timely -> (ticks) : 0)

#include "scripts.pml"

// ---- the server's side of one connection -------------------------------------------------------

inline push(t) {
  if
  :: client[OWNER(t)].line == LIVE ->
    if
    :: client[OWNER(t)].has_push = 1; client[OWNER(t)].push_rid = RID(t);
      client[OWNER(t)].push_left = CLAIMED; client[OWNER(t)].push_fence = fence
    // The older one stays, and this one is lost.
    :: !is_timely && client[OWNER(t)].has_push
    :: is_timely && faults > 0 -> pay(LEASE + 2)      // lost
    fi
  :: else                   // a kernel takes it for a process that does not read
  fi
}

inline write_answer() {
  me.answer = (holder == token -> YES : NO);
  if
  :: kind == ACQUIRE && me.answer == YES -> me.ask_ticket = 0; me.ask_fence = fence
  :: kind == ACQUIRE && me.answer == NO ->
    me.ask_left = 0; me.ask_ticket = score[token];
    if
    :: is_timely ->
      me.ask_poll = left + 1;
      for (i : 1 .. TOKENS) {
        me.ask_poll = me.ask_poll + (score[i] > 0 && score[i] < score[token])
      }
    :: else
    fi
  :: kind == EXTEND && me.answer == NO -> me.ask_left = 0
  :: else
  fi
}

proctype server(byte c) {
  do
  :: atomic {
      if
      :: me.ask != NONE && me.answer == NONE ->
        is_copy = false; kind = me.ask; token = mine; sent_ticket = me.ask_ticket
      // It lay on a connection that is dead by now.
      :: me.late != NONE ->
        is_copy = true; kind = me.late; token = me.late_token; sent_ticket = me.late_ticket;
        me.late = NONE; me.late_token = 0; me.late_ticket = 0
      fi;
      d_step {
        run_script();
        if
        :: !is_copy -> write_answer()
        :: else
        fi
      }
      if
      :: pushed > 0 -> push(pushed)
      :: else
      fi;
      d_step { pushed = 0; close_gaps_of_fences(); close_gaps_of_tickets(); skip }
    }
  od
}

// ---- one client --------------------------------------------------------------------------------
#define is_awake (me.phase != GONE && me.pause == 0)
#define is_poll_due (me.poll == 0)
#define is_extend_due (!is_timely || me.belief <= CLAIM)
#define is_work_done (me.work == 0)

// Nothing is left of a token, so that it may be used for another acquisition.
#define is_unused(t) (holder != t && score[t] == 0 && client[OWNER(t)].late_token != t && \
  !(client[OWNER(t)].has_push && client[OWNER(t)].push_rid == RID(t)))

inline ask_again() {
  if
  :: me.ask == NONE && me.line == LIVE ->
    me.ask = ACQUIRE; me.ask_left = LEASE;
#ifndef NO_SAME_TICKET
    me.ask_ticket = me.ticket
#endif
  :: else
  fi
}

// The only places where a client begins to believe, or goes on.
inline believe(ticks) {
  me.belief = ticks;
  one_believer = true;
  for (i : 0 .. N - 1) { one_believer = one_believer && (i == c || !believes(i)) }
  assert(one_believer)
}

#define drop_hold() me.ticket = 0; me.told = 0; me.is_displaced = 0; me.belief = 0; \
  me.fence = 0; me.poll = 0; me.work = 0
#define drop_push() me.has_push = 0; me.push_rid = 0; me.push_left = 0; me.push_fence = 0
#define drop_ask() me.ask = NONE; me.answer = NONE; me.ask_left = 0; me.ask_ticket = 0; \
  me.ask_fence = 0; me.ask_poll = 0
#define drop_write() me.is_writing = 0; me.write_fence = 0; me.write_rid = 0
#define drop_late() me.late = NONE; me.late_token = 0; me.late_ticket = 0

inline enter(ticks, its_fence) {
  drop_hold();
  me.phase = HELD; me.fence = its_fence;
  believe(ticks);
  if
  :: true
  :: is_timely -> me.work = LEASE + 1
  fi
}

inline leave(with_cancel, with_release) {
  drop_hold();
  me.phase = LEAVE;
  me.is_cancel_due = me.is_cancel_due || with_cancel;
  me.is_release_due = me.is_release_due || with_release
}

inline be_idle() {
  drop_hold();
  me.phase = IDLE; me.rid = 0; me.is_cancel_due = 0; me.is_release_due = 0
}

inline write() {
#ifdef FENCED
  if
  :: me.write_fence >= resource_fence ->
#endif
    // An equal fence must be the same owner's.
    no_stale_write = me.write_fence > resource_fence ||
      (me.write_fence == resource_fence && TOKEN(c, me.write_rid) == resource_token);
    assert(no_stale_write);
    resource_fence = me.write_fence; resource_token = TOKEN(c, me.write_rid);
#ifdef FENCED
  :: else
  fi;
#endif
  drop_write()
}

#ifdef NO_SEND_TIME
#define ask_validity LEASE
#else
#define ask_validity me.ask_left
#endif
#ifdef NO_CLOCK_RULE
#define push_validity CLAIM
#else
#define push_validity me.push_left
#endif

proctype engine(byte c) {
  do
  :: atomic { acquires > 0 && is_awake && me.phase == IDLE && me.line == LIVE && !me.is_writing &&
      (is_unused(TOKEN(c, 0)) || is_unused(TOKEN(c, 1))) ->
      acquires--; me.rid = !is_unused(TOKEN(c, 0));
      if :: last_owner == mine -> last_owner = 0 :: else fi;
      if :: resource_token == mine -> resource_token = 0 :: else fi;
      me.phase = WAIT; ask_again()
    }
#ifndef NO_POLL
  :: atomic { is_awake && me.phase == WAIT && me.ask == NONE && me.line == LIVE && is_poll_due ->
      ask_again() }
#endif
  // on_acquire_reply
  :: atomic { is_awake && me.ask == ACQUIRE && me.answer == NO ->
      if
      :: me.phase == WAIT ->
        me.ticket = me.ask_ticket; me.told = (me.told == 0 -> me.ticket : me.told);
        me.poll = me.ask_poll
      :: me.phase == HELD -> me.is_cancel_due = 1
      :: else
      fi;
      drop_ask()
    }
  :: atomic { is_awake && me.ask == ACQUIRE && me.answer == YES ->
      if
      :: me.phase == WAIT && ask_validity > 0 -> enter(ask_validity, me.ask_fence); drop_ask()
      :: me.phase == WAIT && ask_validity == 0 -> drop_ask(); ask_again()
      :: me.phase == HELD && me.belief > 0 && me.ask_left > me.belief ->
        believe(me.ask_left); drop_ask()
      :: else -> drop_ask()
      fi
    }
  // on_grant_push
  :: atomic { is_awake && me.has_push ->
      if
      :: me.push_rid != me.rid || me.phase == IDLE || me.phase == HELD -> drop_push()
      :: else ->
        if
        :: me.phase == LEAVE -> me.is_release_due = 1; drop_push()
        :: me.phase == WAIT && push_validity > 0 ->
          enter(push_validity, me.push_fence); drop_push()
        :: else -> drop_push(); ask_again()
        fi
      fi
    }
  // The caller gives up.
  :: atomic { cancels > 0 && is_awake && me.phase == WAIT -> cancels--; leave(1, 0) }
  // HELD
  :: atomic { is_awake && me.phase == HELD && me.belief > 0 && me.ask == NONE &&
      me.line == LIVE && is_extend_due -> me.ask = EXTEND; me.ask_left = LEASE }
  :: atomic { is_awake && me.ask == EXTEND && me.answer != NONE ->
      if
      :: me.phase == HELD && me.answer == YES && me.belief > 0 && me.ask_left > me.belief ->
        believe(me.ask_left)
      :: me.phase == HELD && me.answer == NO -> be_idle()
      :: else
      fi;
      drop_ask()
    }
  :: atomic { is_awake && me.phase == HELD &&
      (me.belief == 0 || (is_work_done && !me.is_writing)) -> leave(0, 1) }
  :: atomic { !is_timely && is_awake && me.phase == HELD && me.belief > 0 && !me.is_writing ->
      me.is_writing = 1; me.write_fence = me.fence; me.write_rid = me.rid;
#ifdef NO_PAUSE
      write()
#endif
    }
  :: atomic { is_awake && me.is_writing -> write() }
  // LEAVE
  :: atomic { is_awake && me.phase == LEAVE && me.ask == NONE && me.line == LIVE ->
      if
      :: me.is_cancel_due -> me.ask = CANCEL
      :: !me.is_cancel_due && me.is_release_due -> me.ask = RELEASE
      :: else -> be_idle()
      fi
    }
  :: atomic { is_awake && me.ask == CANCEL && me.answer != NONE ->
      me.is_cancel_due = 0; me.is_release_due = me.is_release_due || me.answer == YES;
      drop_ask()
    }
  :: atomic { is_awake && me.ask == RELEASE && me.answer != NONE ->
      me.is_release_due = 0; drop_ask() }
  // leave_until is over.
  :: atomic { !is_timely && is_awake && me.phase == LEAVE && me.line != LIVE -> be_idle() }
  // Reconnected and subscribed, a client asks at once.
  :: atomic { is_awake && me.line != LIVE ->
      me.line = LIVE;
      if
      :: me.phase == WAIT -> ask_again()
      :: else
      fi
    }
  od
}

// ---- what fails --------------------------------------------------------------------------------

// The connection breaks: answers and pushes are lost; a request is lost or arrives later.
inline cut() {
  if
  :: me.ask != NONE && me.answer == NONE && me.late == NONE ->
    me.late = me.ask; me.late_token = mine; me.late_ticket = me.ask_ticket
  :: true
  fi;
  drop_ask(); drop_push();
  if
  :: me.line = DEAD         // the server knows
  :: me.line = HALF         // the server counts a receiver that reads nothing
  fi
}

#define can_fail (faults > 0 && (me.phase == WAIT || me.phase == HELD || me.phase == LEAVE))
#define crash_costs (holder == mine -> left + 1 : 0) + 1 + (me.line == HALF -> CLAIM + 1 : 0)

proctype network(byte c) {
  do
#ifdef CUTS
  :: atomic { can_fail && me.line == LIVE -> pay(LEASE + 2); cut() }
#endif
#ifdef CRASHES
  :: atomic { can_fail && me.line == LIVE ->
      cut();
      pay(crash_costs);
      if
      :: is_timely -> drop_late()
      :: else
      fi;
      be_idle(); drop_write(); me.phase = GONE; me.pause = 0
    }
#endif
#ifdef PAUSES
  :: atomic { can_fail && me.pause == 0 -> pay(2 * LEASE + 4); me.pause = LEASE + 1 }
#endif
  :: false
  od
}

// ---- time --------------------------------------------------------------------------------------
#define down(x) x = x - (x > 0)

inline tick() {
  down(left);
  if :: left == 0 -> holder = 0 :: else fi;
  for (i : 0 .. N - 1) {
    down(client[i].belief); down(client[i].ask_left); down(client[i].push_left);
    down(client[i].poll); down(client[i].work); down(client[i].pause)
  }
}

#ifdef NO_POLL
#define is_poll_wanted(x) false
#else
#define is_poll_wanted(x) (client[x].phase == WAIT && client[x].poll == 0)
#endif
#define is_busy(x) ((client[x].ask != NONE && client[x].answer == NONE) || \
  (client[x].phase != GONE && client[x].pause == 0 && \
   (client[x].line != LIVE || client[x].ask != NONE || client[x].has_push || \
    client[x].phase == LEAVE || is_poll_wanted(x) || \
    (client[x].phase == HELD && (client[x].belief <= CLAIM || client[x].work == 0)))))

hidden byte is_anybody_busy, is_anybody_waiting, is_anybody_working;

active proctype clock() {
  do
  :: d_step { ticks > 0 -> ticks--; tick(); skip }
  :: d_step { is_timely ->
      is_anybody_busy = false; is_anybody_waiting = false; is_anybody_working = false;
      for (i : 0 .. N - 1) {
        is_anybody_busy = is_anybody_busy || is_busy(i);
        is_anybody_waiting = is_anybody_waiting ||
          (client[i].phase == WAIT && client[i].pause == 0);
        is_anybody_working = is_anybody_working || (believes(i) && client[i].pause == 0)
      }
      if
      :: is_anybody_busy
      :: else ->
        if
        :: is_anybody_waiting && !is_anybody_working ->
          idle_is_paid = debt > 0; assert(idle_is_paid); down(debt)
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
  }
}

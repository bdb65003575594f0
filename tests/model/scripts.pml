// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Part of grant.pml: the scripts, and the numbering of fences and tickets.
//
// One script runs at a time, in one step. What is `hidden` is no part of the state: Spin forgets it
// where it goes back to a choice, so that no choice may come between its write and its use.
//
// The request:
hidden mtype kind;
hidden byte token, sent_ticket;
hidden byte is_copy;            // an old copy: nobody reads the answer
// What it ends with, after its own part:
hidden byte is_grant_due, is_tell_due;
hidden byte self;               // the token that needs no message, because it asks; or 0
byte pushed;                    // the token that a grant is pushed to, or 0
// Within it:
hidden byte head, v, i;
hidden byte was_head, is_used;

// Above every ticket that anybody remembers: the last step of each script closes the gap.
#define NEW_TICKET (TOKENS + 4 * N + 1)

#define is_waiting(t) (client[OWNER(t)].phase == WAIT && client[OWNER(t)].rid == RID(t))

// ---- fragments ---------------------------------------------------------------------------------

inline find_head() {
  head = 0;
  for (i : 1 .. TOKENS) {
    if
    :: score[i] > 0 && (head == 0 || score[i] < score[head]) -> head = i
    :: else
    fi
  }
}

inline set_holder(t, ticks) {
  fresh_fence = t == last_owner || fence > last_fence;
  assert(fresh_fence);
  holder = t; left = ticks; last_owner = t; last_fence = fence
}

inline enqueue() {
#ifdef NO_SAME_MEMBER
  if :: score[token] > 0 && sent_ticket == 0 -> is_twice[token] = 1 :: else fi;
#endif
  if
  :: !is_copy -> client[OWNER(token)].is_displaced = 0
  :: is_copy && score[token] == 0 && sent_ticket == 0 && is_waiting(token) ->
    client[OWNER(token)].is_displaced = 1
  :: else
  fi;
  if
  :: score[token] == 0 && sent_ticket == 0 -> score[token] = NEW_TICKET
  :: score[token] == 0 && sent_ticket > 0 -> score[token] = sent_ticket
#ifndef NO_WAY_BACK
  :: score[token] > sent_ticket && sent_ticket > 0 -> score[token] = sent_ticket
#endif
  :: else
  fi
}

// K is free, or its holder gives it up in this script.
inline grant() {
  holder = 0; left = 0;
  do
  :: find_head();
    if
    :: head == 0 -> break
    :: else
    fi;
    // Nobody is passed over in favour of a later one. The exception: an old copy of the first
    // ACQUIRE, which knows no ticket, came after the token's grant had ended unheard. It put the
    // token behind the others, and until its next poll is there they go first.
    served_in_order = true;
    for (i : 1 .. TOKENS) {
      served_in_order = served_in_order && !(score[i] > 0 && is_waiting(i) &&
        client[OWNER(i)].told > 0 && client[OWNER(i)].told < score[head] &&
        !client[OWNER(i)].is_displaced)
    }
    assert(served_in_order);
    score[head] = 0;
#ifdef NO_SAME_MEMBER
    if :: is_twice[head] -> is_twice[head] = 0; score[head] = NEW_TICKET :: else fi;
#endif
    if
#ifdef NO_SKIP
    :: head != self && client[OWNER(head)].line == DEAD ->
      fence++; set_holder(head, CLAIMED); break
#else
    :: head != self && client[OWNER(head)].line == DEAD -> is_asked[head] = 0
#endif
    :: else ->
      granted_once = is_asked[head];
      assert(granted_once);
      is_asked[head] = 0;
#ifdef NO_FENCE
      fence = fence + (head == self);
#else
      fence++;
#endif
      if
      :: head == self -> set_holder(head, LEASE)
      :: else -> set_holder(head, CLAIMED); pushed = head
      fi;
      break
    fi
  od;
  is_tell_due = holder != 0
}

#define at_most(x, y) x = (x > y -> y : x)

inline tell() {
  do
  :: find_head();
    if
    :: head == 0 || head == self -> break
    :: else
    fi;
    if
    :: client[OWNER(head)].line == DEAD -> score[head] = 0; is_asked[head] = 0
    :: else ->
      // Read at once, but behind the answers before it, as on one connection. (On a connection of
      // its own it may overtake one. The client then takes no notice of it, and its next poll may
      // be as late as its holder's time left was.) A message that is lost is lost with its
      // connection, and then the client polls.
      if
      :: is_timely && is_up(OWNER(head)) && is_waiting(head) ->
        if
        :: client[OWNER(head)].ask == NONE -> at_most(client[OWNER(head)].poll, left + 1)
        :: client[OWNER(head)].answer == NO -> at_most(client[OWNER(head)].ask_poll, left + 1)
        :: else         // the answer to come will be newer
        fi
      :: else
      fi;
      break
    fi
  od
}

// ---- scripts -----------------------------------------------------------------------------------

// The token holds K afterwards, or is queued at its score.
inline acquire() {
  if
  :: holder == 0 && head == 0 -> fence++; set_holder(token, LEASE)
  :: holder == token -> score[token] = 0; is_asked[token] = 0; left = LEASE
  :: else ->
    is_asked[token] = 1;
    enqueue();
#ifndef NO_RECHECK
    is_grant_due = holder == 0;
#endif
    self = token
  fi
}

inline extend() {
  if
  :: holder == token -> left = LEASE
#ifdef NO_GAP
  :: holder == 0 -> set_holder(token, LEASE)
#endif
  :: else
  fi
}

inline release() {
#ifdef NO_OWNER
  is_grant_due = true
#else
  is_grant_due = holder == token || (holder == 0 && head != 0)
#endif
}

inline cancel() {
  was_head = head == token;
  score[token] = 0; is_asked[token] = 0;
  is_grant_due = holder == 0;
  is_tell_due = holder != 0 && was_head
}

inline run_script() {
  is_grant_due = false; is_tell_due = false; self = 0;
  find_head();
  if
  :: kind == ACQUIRE -> acquire()
  :: kind == EXTEND -> extend()
  :: kind == RELEASE -> release()
  :: kind == CANCEL -> cancel()
  fi;
  if
  :: is_grant_due -> grant()
  :: else
  fi;
  if
#ifndef NO_TELL
  :: is_tell_due -> tell()
#endif
  :: else
  fi
}

// ---- numbers: only the order of fences, and of tickets, matters --------------------------------

#define has_fence(x, f) (client[x].fence == f || client[x].write_fence == f || \
  client[x].push_fence == f || client[x].ask_fence == f)
#define has_ticket(x, t) (client[x].ticket == t || client[x].ask_ticket == t || \
  client[x].late_ticket == t || client[x].told == t)
#define lower(x) x = x - (x > v)

inline close_gaps_of_fences() {
  // A write that everybody who lives will exceed can be forgotten.
  v = resource_fence;
  is_used = false;
  do
  :: v > 0 && !is_used ->
    for (i : 0 .. N - 1) { is_used = is_used || has_fence(i, v) }
    v--
  :: else -> break
  od;
  if
  :: !is_used -> resource_fence = 0; resource_token = 0
  :: else
  fi;
  v = fence;
  do
  :: v > 0 ->
    is_used = fence == v || resource_fence == v || last_fence == v;
    for (i : 0 .. N - 1) { is_used = is_used || has_fence(i, v) }
    if
    :: is_used
    :: else ->
      lower(fence); lower(resource_fence); lower(last_fence);
      for (i : 0 .. N - 1) {
        lower(client[i].fence); lower(client[i].write_fence);
        lower(client[i].push_fence); lower(client[i].ask_fence)
      }
    fi;
    v--
  :: else -> break
  od
}

inline close_gaps_of_tickets() {
  v = NEW_TICKET;
  do
  :: v > 0 ->
    is_used = false;
    for (i : 1 .. TOKENS) { is_used = is_used || score[i] == v }
    for (i : 0 .. N - 1) { is_used = is_used || has_ticket(i, v) }
    if
    :: is_used
    :: else ->
      for (i : 1 .. TOKENS) { lower(score[i]) }
      for (i : 0 .. N - 1) {
        lower(client[i].ticket); lower(client[i].ask_ticket);
        lower(client[i].late_ticket); lower(client[i].told)
      }
    fi;
    v--
  :: else -> break
  od
}

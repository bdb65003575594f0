// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Part of retained.pml: the scripts, and the numbering of fences.
//
// One script runs at a time, in one step. What is `hidden` is no part of the state: Spin forgets it
// where it goes back to a choice, so that no choice may come between its write and its use.
//
// The request:
hidden mtype kind;
hidden byte token;
// What it ends with; both live until the messages are sent, past the choice of what is lost:
byte pushed, recalled;          // tokens that a grant and a recall are sent to, or 0
// Within it:
hidden byte v, i, self;
hidden byte is_free, is_heard, is_used;

#define is_queued(t) (queue[0] == (t) || queue[1] == (t) || queue[N - 1] == (t))

// ---- fragments ---------------------------------------------------------------------------------

inline set_holder(t) {
  fresh_fence = fence > last_fence || t == last_owner;
  assert(fresh_fence);
  holder = t; left = LEASE; last_owner = t;
  if :: last_fence < fence -> last_fence = fence :: else fi;
  is_overtaken = 0
}

inline dequeue(t) {
  v = 0;
  for (i : 0 .. N - 1) {
    if
    :: queue[i] != t -> queue[v] = queue[i]; v = v + (queue[i] > 0)
    :: else
    fi
  }
  for (i : v .. N - 1) { queue[i] = 0 }
}

inline enqueue(t) {
  if
  :: is_queued(t)
  :: else ->
    i = 0;
    do :: queue[i] > 0 -> i++ :: else -> break od;
    queue[i] = t
  fi
}

// K is free, or its holder gives it up in this script.
inline grant() {
  holder = 0; left = 0;
  do
  :: queue[0] == 0 -> break
  :: queue[0] > 0 ->
    token = queue[0];
    dequeue(token);
    if
    :: token != self && client[OWNER(token)].line == DEAD
    :: else ->
      fence++; set_holder(token);
      pushed = (token == self -> 0 : token);
      break
    fi
  od
}

// The head of the queue recalls with each ACQUIRE, and a try that finds no queue.
#define may_recall(t) (OWNER(t) != OLD && OWNER(holder) != OLD && OWNER(t) != OWNER(holder) && \
  (queue[0] == (t) || (kind == TRY && queue[0] == 0)))

inline refuse() {
  if
  :: holder > 0 && may_recall(token) ->
    recalled = holder;
    is_heard = client[OWNER(holder)].line != DEAD
  :: else
  fi
}

// ---- scripts -----------------------------------------------------------------------------------

inline acquire() {
  if
  :: holder == 0 && queue[0] == 0 ->
    is_free = true; fence++; set_holder(token);
#ifndef NO_BLOCK
    // `last_fence` is what callers have got: the rest of the block is for local acquisitions.
    if :: OWNER(token) != OLD -> fence = fence + BLOCK - 1 :: else fi
#endif
  :: holder == token -> dequeue(token); left = LEASE
  :: else ->
    if :: kind == ACQUIRE -> enqueue(token) :: else fi;
    self = token;
    if :: holder == 0 -> grant() :: else fi;
    token = self;
    if :: holder != token -> refuse() :: else fi;
    // An old waiter recalls nobody.
    if
    :: is_timely && OWNER(token) == OLD && debt < RETAIN + WORK + 1 -> debt = RETAIN + WORK + 1
    :: else
    fi
  fi
}

inline release() {
  if
  :: holder == token || (holder == 0 && queue[0] > 0) -> grant()
  :: else
  fi
}

inline cancel() {
  dequeue(token);
  if :: holder == 0 -> grant() :: else fi
}

inline run_script() {
  self = 0; is_free = false; is_heard = false;
  if
  :: kind == ACQUIRE || kind == TRY -> acquire()
  :: kind == EXTEND -> if :: holder == token -> left = LEASE :: else fi
  :: kind == RELEASE -> release()
  :: kind == CANCEL -> cancel()
  fi
}

// To the client of the process `server` that runs it.
inline write_answer() {
  me.answer = (holder == mine -> (is_free -> FREE : YES) : (is_heard -> HEARD : NO));
  if
  :: (kind == ACQUIRE || kind == TRY) && holder == mine ->
    me.ask_fence = (is_free -> last_fence : fence)
  :: kind == ACQUIRE && holder != mine -> me.ask_left = 0; me.ask_poll = (is_timely -> left + 1 : 0)
  :: else -> me.ask_left = (me.answer == YES -> me.ask_left : 0)
  fi
}

inline force_release() {
  self = 0;
  if
  :: client[OWNER(holder)].rid == RID(holder) && client[OWNER(holder)].phase != IDLE ->
    client[OWNER(holder)].is_forced = 1
  :: else
  fi;
#ifndef NO_FORCE_RECALL
  if :: OWNER(holder) != OLD -> recalled = holder :: else fi;
#endif
  last_owner = 0; fence++;
  grant()
}

// ---- numbers: only the order of fences matters -------------------------------------------------

// A number of a block is in use as long as its client may give it to a caller.
#define has_fence(x, f) (client[x].push_fence == f || client[x].ask_fence == f || \
  (client[x].fence > 0 && client[x].fence <= f && f <= client[x].last) || client[x].fence == f)
#define is_block_asked(x, f) (client[x].answer == FREE && client[x].ask_fence <= f && \
  f < client[x].ask_fence + BLOCK)
#define lower(x) x = x - (x > v)

inline close_gaps_of_fences() {
  v = fence;
  do
  :: v > 0 ->
    is_used = fence == v || last_fence == v;
    for (i : 0 .. N - 1) { is_used = is_used || has_fence(i, v) || is_block_asked(i, v) }
    if
    :: is_used
    :: else ->
      lower(fence); lower(last_fence);
      for (i : 0 .. N - 1) {
        lower(client[i].fence); lower(client[i].last);
        lower(client[i].push_fence); lower(client[i].ask_fence)
      }
    fi;
    v--
  :: else -> break
  od
}

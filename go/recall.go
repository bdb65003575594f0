// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"context"
	"errors"
	"runtime"

	"redlatch.io/redlatch/internal/rlc"
)

// ErrRecalled is the cause of the context of work in Lead, when another client has asked the leader
// to resign.
var ErrRecalled = errors.New("redlatch: the leader was asked to resign")

// Recall asks the holders of the lock name to finish: the holder of a mutex, all readers, all
// holders of permits, the leader of an election. It returns the number of holders whose client has
// heard it; 0 is no error. It forces nothing: a holder decides what it does. Within a second of the
// answer to a recall, another for the name by this client sends nothing, and returns that answer.
//
// The reason is for people, and may be empty. It blocks for at most connect_timeout +
// command_timeout. Errors:
//
//   - ErrInvalid: the name, or a reason that is too long.
//   - ErrOutcomeUnknown: no answer came; the recall may have been sent.
func (c *Client) Recall(ctx context.Context, name, reason string) (heard int64, err error) {
	return c.recall(ctx, "recall", name, reason)
}

// Resign asks the leader of the election name to resign: Recall of that name. A Lead that hears it
// resigns when its work has returned.
func (c *Client) Resign(ctx context.Context, name, reason string) (heard int64, err error) {
	return c.recall(ctx, "resign", name, reason)
}

func (c *Client) recall(ctx context.Context, op, name, reason string) (int64, error) {
	defer runtime.KeepAlive(c)
	if ctx.Err() != nil {
		return 0, endedError(ctx, op, name, ErrCancelled)
	}
	request, err := c.common.ask(ctx, op, name, func() rlc.Request {
		return rlc.Recall_start(c.handle, name, reason)
	})
	if err != nil {
		return 0, sent(err)
	}
	defer c.common.free(request)
	return rlc.Recall_heard(request), nil
}

// Recalled returns a channel that is closed when another client asks the holder of this lease to
// finish (Recall), once, however many do. It is closed already if one has. The end of the lease
// does not close it: Context ends then. The channel of a lease of Attach is never closed, because
// recalls go to the client that acquired it; nor is that of a lease of a Redlock, whose locks
// cannot be recalled. RecallCount is 0 then.
//
//	select {
//	case <-lease.Recalled():
//		log.Print("another one wants the lock: ", lease.RecallReason())
//	case <-done:
//	}
func (l *Lease) Recalled() <-chan struct{} {
	defer runtime.KeepAlive(l)
	l.Context() // The end of the lease ends the watch.
	h := l.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.recalled != nil {
		return h.recalled
	}
	h.recalled = make(chan struct{})
	if rlc.Lease_recall_count(h.handle) > 0 {
		close(h.recalled)
		return h.recalled
	}
	if h.ctx.Err() != nil {
		return h.recalled // No recall comes any more, and nothing would end a watch.
	}
	pump := &l.common.pump
	tag, status := pump.watch(func(queue rlc.Queue, tag int64) int {
		return rlc.Lease_watch_recall(h.handle, queue, tag)
	}, h.recall)
	if status == OK {
		h.forgetRecall = func() { pump.forget(tag) }
	}
	return h.recalled
}

// recall is called by the pump.
func (h *hold) recall() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forgetRecall = nil
	close(h.recalled)
}

// endRecalls ends the watch. With the mutex.
func (h *hold) endRecalls() {
	if h.forgetRecall != nil {
		h.forgetRecall()
		h.forgetRecall = nil
	}
}

// RecallCount returns how often the holder of this lease has been asked to finish. Without
// Recalled, a recall is counted with the next answer of the server, which is that of a renewal at
// the latest.
func (l *Lease) RecallCount() int64 {
	defer runtime.KeepAlive(l)
	return rlc.Lease_recall_count(l.hold.handle)
}

// RecallReason returns the reason of the last recall, "" without one: text of another party.
func (l *Lease) RecallReason() string {
	defer runtime.KeepAlive(l)
	return text(func(buffer []byte) int64 { return rlc.Lease_recall_reason(l.hold.handle, buffer) })
}

// isOfRecall reports whether err of work says no more than that its context has ended by a recall.
func isOfRecall(err error) bool {
	return err == nil || errors.Is(err, context.Canceled) || errors.Is(err, ErrRecalled)
}

// untilRecalled returns a context that ends with ctx, or with the cause ErrRecalled. finish ends
// it, and reports whether the lease was recalled before.
func (l *Lease) untilRecalled(ctx context.Context) (inside context.Context, finish func() bool) {
	inside, cancel := context.WithCancelCause(ctx)
	recalled := l.Recalled()
	go func() {
		select {
		case <-recalled:
			cancel(ErrRecalled)
		case <-inside.Done():
		}
	}()
	return inside, func() bool {
		cancel(nil)
		return errors.Is(context.Cause(inside), ErrRecalled)
	}
}

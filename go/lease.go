// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"redlatch.io/redlatch/internal/rlc"
)

// State is what this process knows about a lease.
type State int

const (
	// StateHeld is valid by the local clock, drift taken off.
	StateHeld State = rlc.RL_LEASE_HELD
	// StateReleased is given back, by Unlock or by Close of the client.
	StateReleased State = rlc.RL_LEASE_RELEASED
	// StateLost is not certain any more.
	StateLost State = rlc.RL_LEASE_LOST
	// StateDetached is handed over by Detach, or about to be.
	StateDetached State = rlc.RL_LEASE_DETACHED
)

func (s State) String() string {
	switch s {
	case StateHeld:
		return "HELD"
	case StateReleased:
		return "RELEASED"
	case StateLost:
		return "LOST"
	case StateDetached:
		return "DETACHED"
	}
	return "UNKNOWN"
}

// Mode is how a lease holds its lock, or what a waiter waits for.
type Mode int

const (
	// ModeWrite is alone.
	ModeWrite Mode = rlc.RL_MODE_WRITE
	// ModeRead is together with others that read.
	ModeRead Mode = rlc.RL_MODE_READ
	// ModeUpgrade is that of a waiter: it reads, and waits to write.
	ModeUpgrade Mode = rlc.RL_MODE_UPGRADE
)

func (m Mode) String() string {
	switch m {
	case ModeWrite:
		return "WRITE"
	case ModeRead:
		return "READ"
	case ModeUpgrade:
		return "UPGRADE"
	}
	return "NONE"
}

// Lease is one hold of a lock. It is renewed in the background until it is unlocked or lost. Any
// goroutine may use it. Keep it: one that is dropped while it holds the lock goes on holding it
// until the client is closed (ReportLeaks tells of it).
type Lease struct {
	hold    *hold
	session *session
	client  any             // it must not be collected before its leases
	base    context.Context // of whom acquired, without its end
	origin  *origin
}

// hold is what the pump knows of a lease, which may be collected meanwhile.
type hold struct {
	name   string // in ownLeases
	mu     sync.Mutex
	handle rlc.Lease // 0 when it was freed
	ctx    context.Context
	cancel context.CancelCauseFunc
	tag    int64 // of the watch for its end
}

func newLease(ctx context.Context, s *session, client any, handle rlc.Lease) *Lease {
	lease := &Lease{
		hold:    &hold{handle: handle},
		session: s,
		client:  client,
		base:    context.WithoutCancel(ctx),
		origin:  newOrigin(),
	}
	runtime.SetFinalizer(lease, leaveLease)
	return lease
}

// LostReason is why a lease was lost.
type LostReason int

const (
	// LostNone means that the lease is not lost.
	LostNone LostReason = rlc.RL_LOST_NONE
	// LostExpired means that no renewal was confirmed in time, or that there was none.
	LostExpired LostReason = rlc.RL_LOST_EXPIRED
	// LostTakenOver means that the server no longer has the lease, and the lock has another holder.
	LostTakenOver LostReason = rlc.RL_LOST_TAKEN_OVER
	// LostForced is to be treated as LostGone, the usual reason after a forced release. Rare: the
	// lease was removed from the server, which then granted a late request of the same waiter.
	LostForced LostReason = rlc.RL_LOST_FORCED
	// LostMaxHold means that MaxHold was reached.
	LostMaxHold LostReason = rlc.RL_LOST_MAX_HOLD
	// LostNoMajority means that too few servers of a Redlock still have the lease.
	LostNoMajority LostReason = rlc.RL_LOST_NO_MAJORITY
	// LostClosed means that the client ended without a shutdown. Programs do not see this.
	LostClosed LostReason = rlc.RL_LOST_CLOSED
	// LostDefect means that a defect of redlatch was found; the log has more.
	LostDefect LostReason = rlc.RL_LOST_DEFECT
	// LostGone means that the server no longer has the lease: a restart or a failover without the
	// data, DEL or FLUSHALL, a forced release, an eviction or an expiry has removed it. No other
	// holder was seen.
	LostGone LostReason = rlc.RL_LOST_GONE
)

func (r LostReason) String() string {
	switch r {
	case LostNone:
		return "NONE"
	case LostExpired:
		return "EXPIRED"
	case LostTakenOver:
		return "TAKEN_OVER"
	case LostForced:
		return "FORCED"
	case LostMaxHold:
		return "MAX_HOLD"
	case LostNoMajority:
		return "NO_MAJORITY"
	case LostClosed:
		return "CLOSED"
	case LostDefect:
		return "DEFECT"
	case LostGone:
		return "GONE"
	}
	return "UNKNOWN"
}

// LostReason is why the lease was lost, also in words; LostNone and "" if it was not.
func (l *Lease) LostReason() (LostReason, string) {
	defer runtime.KeepAlive(l)
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	handle := l.hold.handle
	return LostReason(rlc.Lease_lost_reason(handle)),
		text(func(buffer []byte) int64 { return rlc.Lease_lost_text(handle, buffer) })
}

// Name is the name of the lock.
func (l *Lease) Name() string {
	defer runtime.KeepAlive(l)
	return nameOf(l.hold.handle)
}

func nameOf(handle rlc.Lease) string {
	return text(func(buffer []byte) int64 { return rlc.Lease_name(handle, buffer) })
}

// Fence rises with every new owner of the lock. Hand it to what you write to, and let that refuse a
// lower one. 0 if the lease was attached, and for a Redlock that is not fenced.
func (l *Lease) Fence() int64 {
	defer runtime.KeepAlive(l)
	return rlc.Lease_fence(l.hold.handle)
}

// Token is the text that holds the lock on the server.
func (l *Lease) Token() string {
	defer runtime.KeepAlive(l)
	return text(func(buffer []byte) int64 { return rlc.Lease_token(l.hold.handle, buffer) })
}

// Remaining is for how long the lease is valid by the local clock, drift taken off; 0 when it is
// not held.
func (l *Lease) Remaining() time.Duration {
	defer runtime.KeepAlive(l)
	return ms(rlc.Lease_remaining_ms(l.hold.handle))
}

// HoldCount is how often the owner of a reentrant lock held it when this lease was granted, with
// it; 1 for all other locks.
func (l *Lease) HoldCount() int64 {
	defer runtime.KeepAlive(l)
	return rlc.Lease_hold_count(l.hold.handle)
}

// Mode is ModeWrite, or ModeRead of one that reads.
func (l *Lease) Mode() Mode {
	defer runtime.KeepAlive(l)
	return Mode(rlc.Lease_mode(l.hold.handle))
}

// State is whether it is held, or why it is not. It does not ask the server.
func (l *Lease) State() State {
	defer runtime.KeepAlive(l)
	return State(rlc.Lease_state(l.hold.handle))
}

// Check is nil while the lease holds, by the local clock; else an error that Is ErrLost and says
// why, or ErrNotHeld after Unlock and Detach. It does not ask the server.
func (l *Lease) Check() error {
	defer runtime.KeepAlive(l)
	if err := check(l.hold.handle); err != nil {
		return err
	}
	return nil
}

func check(handle rlc.Lease) *Error {
	if Status(rlc.Lease_check(handle, 0)) == OK {
		return nil
	}
	c := newCall("check", nameOf(handle))
	defer c.free()
	rlc.Lease_check(handle, c.handle)
	return c.failure()
}

// Context has the values of the context that the lock was acquired with, and ends when the lease
// does: context.Cause is then an error that Is ErrLost, with the reason, or context.Canceled if it
// was given back or detached. It is told when the lease ends by the local clock, some microseconds
// later, or milliseconds where all processors are busy; the server keeps the lock for 1 % of the
// lease and 2 ms more, Check looks at the clock itself. Neither stops a goroutine that is paused
// between its look and its write: only a fence does.
func (l *Lease) Context() context.Context {
	defer runtime.KeepAlive(l)
	h := l.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx != nil {
		return h.ctx
	}
	h.ctx, h.cancel = context.WithCancelCause(l.base)
	if check(h.handle) != nil {
		h.cancel(whyEnded(h.handle))
		return h.ctx
	}
	tag, status := l.session.pump.watch(func(queue rlc.Queue, tag int64) int {
		return rlc.Lease_watch(h.handle, queue, tag)
	}, h.end) // The pump keeps h alive, not the lease.
	if h.tag = tag; status != OK {
		// Whoever cannot be told of a loss must not rely on it.
		h.cancel(&Error{Op: "watch", Name: nameOf(h.handle), Status: status})
	}
	return h.ctx
}

// end is called by the pump.
func (h *hold) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.handle != 0 {
		h.cancel(whyEnded(h.handle))
	}
}

// whyEnded is the cause for the context of a lease that is not held any more.
func whyEnded(handle rlc.Lease) error {
	if State(rlc.Lease_state(handle)) != StateLost {
		return context.Canceled
	}
	err := check(handle)
	err.Op = "hold"
	return err
}

// endContext ends the context before the lock is given back.
func (l *Lease) endContext() {
	h := l.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cancel == nil {
		return
	}
	l.session.pump.forget(h.tag)
	h.cancel(whyEnded(h.handle))
}

// Unlock gives the lock back, and ends Context first. It is sent whatever ctx says: a ctx that has
// ended only costs the knowledge of how it went.
//
// The error Is ErrLost if the lease had ended before, so that others may have been inside at the
// same time; ErrNotHeld after another Unlock; ErrOutcomeUnknown if no answer came: it then goes on
// in the background. nil also if the owner of a reentrant lock has other holds.
func (l *Lease) Unlock(ctx context.Context) error {
	_, err := l.Release(ctx)
	return err
}

// Release is Unlock, and says whether the lock is free: not so if its owner has other holds of it.
func (l *Lease) Release(ctx context.Context) (free bool, err error) {
	l.endContext()
	status, failure := l.finish(ctx, "unlock", noWait, rlc.Release_start)
	if failure != nil {
		return false, failure
	}
	return status != ErrStillHeld, nil
}

// Extend lets the lease last ttl from now, and renews it for so long from then on. A shorter one
// than what is left shortens this process's own deadline only.
func (l *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	if shown := partText(ttl); shown != "" {
		return &Error{Op: "extend", Name: l.Name(), Status: ErrInvalid,
			Message: fmt.Sprintf("ttl must be at least %d ms (got %s)", rlc.RL_MIN_TTL_MS, shown)}
	}
	return l.unlessEnded(ctx, "extend", noWait, func(handle rlc.Lease) rlc.Request {
		return rlc.Extend_start(handle, wholeMs(ttl))
	})
}

// Upgrade makes the reader the writer without letting go in between: at once if it reads alone,
// else when the others are gone, in front of all who wait. It reads meanwhile, and goes on to if it
// fails. ErrDeadlock if another reader waits for this already: one of the two must give up.
func (l *Lease) Upgrade(ctx context.Context) error {
	wait := waitMs(ctx)
	return l.unlessEnded(ctx, "upgrade", wait, func(handle rlc.Lease) rlc.Request {
		return rlc.Rw_upgrade_start(handle, wait)
	})
}

// TryUpgrade is Upgrade without waiting: ErrBusy if others read.
func (l *Lease) TryUpgrade(ctx context.Context) error {
	return l.unlessEnded(ctx, "upgrade", noWait, func(handle rlc.Lease) rlc.Request {
		return rlc.Rw_upgrade_start(handle, noWait)
	})
}

// Downgrade makes the writer a reader without letting go in between; others that are next in line
// to read enter.
func (l *Lease) Downgrade(ctx context.Context) error {
	return l.unlessEnded(ctx, "downgrade", noWait, rlc.Rw_downgrade_start)
}

func (l *Lease) unlessEnded(ctx context.Context, op string, wait int64,
	start func(rlc.Lease) rlc.Request) error {
	if ctx.Err() != nil {
		return endedError(ctx, op, l.Name(), ErrCancelled)
	}
	_, err := l.finish(ctx, op, wait, start)
	return err
}

// finish does what start starts. The status is OK, or ErrStillHeld, if there is no error.
func (l *Lease) finish(ctx context.Context, op string, wait int64,
	start func(rlc.Lease) rlc.Request) (Status, error) {
	defer runtime.KeepAlive(l)
	l.session.calls.Lock()
	request := start(l.hold.handle)
	l.session.calls.Unlock()
	if request == 0 {
		return ErrNoMemory, &Error{Op: op, Name: l.Name(), Status: ErrNoMemory}
	}
	defer l.session.free(request)
	status := l.session.pump.await(ctx, request)
	isDetachUnsent := op == "detach" && l.State() == StateHeld
	if status == ErrCancelled && op != "upgrade" && !isDetachUnsent {
		// It is sent, and goes on by itself.
		return ErrOutcomeUnknown, endedError(ctx, op, l.Name(), ErrOutcomeUnknown)
	}
	if l.State() != StateHeld {
		l.session.own.drop(l.hold)
	}
	if status != OK && status != ErrStillHeld {
		return status, failed(ctx, op, l.Name(), status, request, wait)
	}
	return status, nil
}

// Detach hands the lease to another process: one Attach with the token that it returns can take it
// over. Renewal stops, and the lock stays until its TTL ends.
//
// The error Is ErrLost if the lease was lost before; ErrNotHeld after Unlock or another Detach;
// ErrOutcomeUnknown if no answer came, or ctx ended after the call was sent: then the lease is no
// longer held here, and may be attachable with Token. After ErrUnavailable, ErrDenied, ErrServer
// and ErrCancelled it is held as before. Unless the lease is still held, Context ends.
func (l *Lease) Detach(ctx context.Context) (token string, err error) {
	err = l.unlessEnded(ctx, "detach", noWait, rlc.Lease_detach_start)
	if l.State() != StateHeld {
		l.endContext()
	}
	if err != nil {
		return "", err
	}
	return l.Token(), nil
}

// WaitLost waits until the lease is not held any more: an error that Is ErrLost if it was lost, nil
// if it was given back, one that Is ctx.Err() and the cause of ctx if it is held still.
func (l *Lease) WaitLost(ctx context.Context) error {
	held := l.Context()
	select {
	case <-held.Done():
	case <-ctx.Done():
		if l.State() == StateHeld {
			return causeOf(ctx)
		}
		<-held.Done() // It was, or is about to be.
	}
	if cause := context.Cause(held); cause != context.Canceled {
		return cause
	}
	return nil
}

func causeOf(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != ctx.Err() {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}

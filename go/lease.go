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

// State is the state of a lease, as this process knows it.
type State int

const (
	// StateHeld means valid by the local clock, less the drift.
	StateHeld State = rlc.RL_LEASE_HELD
	// StateReleased means released, by Unlock or by Close of the client.
	StateReleased State = rlc.RL_LEASE_RELEASED
	// StateLost means that the lease is no longer certain.
	StateLost State = rlc.RL_LEASE_LOST
	// StateDetached means handed over by Detach, or about to be.
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

// Mode is the mode of a lease or of a waiter.
type Mode int

const (
	// ModeWrite means alone, as every lock except a read lock.
	ModeWrite Mode = rlc.RL_MODE_WRITE
	// ModeRead means together with other readers.
	ModeRead Mode = rlc.RL_MODE_READ
	// ModeUpgrade is the mode of a waiter: a reader that waits to write.
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

// Lease is one acquisition of a lock. It is renewed in the background until it is unlocked or lost.
// Any goroutine may use and unlock it. Keep it: a held lease that the program drops stays held
// until the client is closed (see ReportLeaks).
type Lease struct {
	hold   *hold
	common *common
	client any             // it must not be collected before its leases
	names  []NamedMode     // of LockAll; nil: one name
	base   context.Context // that of the acquire, without its end
	origin *origin
}

// hold is the part of a lease that the pump has; the lease may be collected meanwhile.
type hold struct {
	name   string // in ownLeases
	mu     sync.Mutex
	handle rlc.Lease // 0 when it was freed
	ctx    context.Context
	cancel context.CancelCauseFunc
	tag    int64 // of the watch for its end

	recalled     chan struct{} // nil: not watched
	forgetRecall func()        // ends that watch; nil: no watch
}

func newLease(ctx context.Context, s *common, client any, handle rlc.Lease) *Lease {
	lease := &Lease{
		hold:   &hold{handle: handle},
		common: s,
		client: client,
		base:   context.WithoutCancel(ctx),
		origin: newOrigin(),
	}
	runtime.SetFinalizer(lease, leaveLease)
	return lease
}

// LostReason is the reason of a loss.
type LostReason int

const (
	// LostNone: the lease is not lost.
	LostNone LostReason = rlc.RL_LOST_NONE
	// LostExpired: no renewal was confirmed in time, or there was none.
	LostExpired LostReason = rlc.RL_LOST_EXPIRED
	// LostTakenOver: the server no longer has the lease, and the lock has another holder.
	LostTakenOver LostReason = rlc.RL_LOST_TAKEN_OVER
	// LostForced: the lease was removed from the server, which then granted a late request of the same
	// waiter. Rare. Treat it as LostGone, the usual reason after a forced release.
	LostForced LostReason = rlc.RL_LOST_FORCED
	// LostMaxHold: MaxHold was reached.
	LostMaxHold LostReason = rlc.RL_LOST_MAX_HOLD
	// LostNoMajority: too few servers of a Redlock still have the lease.
	LostNoMajority LostReason = rlc.RL_LOST_NO_MAJORITY
	// LostClosed: the client ended without a shutdown. Programs do not see this.
	LostClosed LostReason = rlc.RL_LOST_CLOSED
	// LostDefect: a defect of redlatch was found; the log has more.
	LostDefect LostReason = rlc.RL_LOST_DEFECT
	// LostGone: the server no longer has the lease, and no other holder was seen. The causes are a
	// restart or a failover without the data, DEL or FLUSHALL, a forced release, an eviction or an
	// expiry.
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

// LostReason returns the reason of the loss, also in words; LostNone and "" if the lease is not
// lost.
func (l *Lease) LostReason() (LostReason, string) {
	defer runtime.KeepAlive(l)
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	handle := l.hold.handle
	return LostReason(rlc.Lease_lost_reason(handle)),
		text(func(buffer []byte) int64 { return rlc.Lease_lost_text(handle, buffer) })
}

// Name returns the name of the lock; the first one of LockAll.
func (l *Lease) Name() string {
	defer runtime.KeepAlive(l)
	return nameOf(l.hold.handle)
}

func nameOf(handle rlc.Lease) string {
	return text(func(buffer []byte) int64 { return rlc.Lease_name(handle, buffer) })
}

// Fence returns the fencing number of this lease. Every new exclusive holder of a name gets a
// higher one: pass it to the resource that you write to, and let the resource refuse a lower one. A
// reader's fence is lower than that of every later writer; readers may share one. An attached lease
// has the number that was passed to AttachFence. 0 for a Redlock without the option "fenced".
func (l *Lease) Fence() int64 {
	defer runtime.KeepAlive(l)
	return rlc.Lease_fence(l.hold.handle)
}

// Fences returns the Fence of each name that the lease has. Only leases of LockAll and LockPath may
// have several.
func (l *Lease) Fences() map[string]int64 {
	if len(l.names) == 0 {
		return map[string]int64{l.Name(): l.Fence()}
	}
	defer runtime.KeepAlive(l)
	fences := make(map[string]int64, len(l.names))
	for i, one := range l.names {
		fences[one.Name] = rlc.Lease_part_fence(l.hold.handle, i)
	}
	return fences
}

// Token returns the token that proves ownership to the server. Attach takes it.
func (l *Lease) Token() string {
	defer runtime.KeepAlive(l)
	return text(func(buffer []byte) int64 { return rlc.Lease_token(l.hold.handle, buffer) })
}

// Remaining returns the validity left, by the local clock, less the drift; 0 if the lease is not
// held.
func (l *Lease) Remaining() time.Duration {
	defer runtime.KeepAlive(l)
	return ms(rlc.Lease_remaining_ms(l.hold.handle))
}

// HoldCount returns the number of acquisitions of the owner of a reentrant lock when this one was
// granted, this one included. It does not change afterwards. 1 if the lock was granted to a waiter,
// and for locks that are not reentrant.
func (l *Lease) HoldCount() int64 {
	defer runtime.KeepAlive(l)
	return rlc.Lease_hold_count(l.hold.handle)
}

// Permits returns how many permits of a semaphore the lease has; 1 for every other lock.
func (l *Lease) Permits() int64 {
	defer runtime.KeepAlive(l)
	return rlc.Lease_permits(l.hold.handle)
}

// Mode returns ModeRead for a reader, else ModeWrite.
func (l *Lease) Mode() Mode {
	defer runtime.KeepAlive(l)
	return Mode(rlc.Lease_mode(l.hold.handle))
}

// State returns the state of the lease, by the local clock. It sends nothing.
func (l *Lease) State() State {
	defer runtime.KeepAlive(l)
	return State(rlc.Lease_state(l.hold.handle))
}

// Check returns nil while the lease is held, by the local clock. It sends nothing. Otherwise the
// error is
//
//   - ErrLost, with the reason: the lease was lost.
//   - ErrNotHeld: after Unlock and Detach.
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

// Context has the values of the context of the acquire, and ends when the lease does. The cause is
// then ErrLost with the reason, or context.Canceled after Unlock and Detach.
//
// A lease ends by the local clock. The context ends some microseconds later, or milliseconds while
// all processors are busy. The server keeps the lock for 1 % of the ttl and 2 ms more, and Check
// reads the clock itself. Neither stops a goroutine that is paused between its check and its write:
// only a resource that refuses lower fences does.
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
	tag, status := l.common.pump.watch(func(queue rlc.Queue, tag int64) int {
		return rlc.Lease_watch(h.handle, queue, tag)
	}, h.end) // The pump keeps h alive, not the lease.
	if h.tag = tag; status != OK {
		// Without a notification of a loss, the context must not be relied on.
		h.cancel(&Error{Op: "watch", Name: nameOf(h.handle), Status: status})
	}
	return h.ctx
}

// end is called by the pump.
func (h *hold) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.endRecalls()
	if h.handle != 0 {
		h.cancel(whyEnded(h.handle))
	}
}

// whyEnded returns the cause for the context of a lease that is no longer held.
func whyEnded(handle rlc.Lease) error {
	if State(rlc.Lease_state(handle)) != StateLost {
		return context.Canceled
	}
	err := check(handle)
	err.Op = "hold"
	return err
}

// endContext ends the context before the lock is released.
func (l *Lease) endContext() {
	h := l.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cancel == nil {
		return
	}
	h.endRecalls()
	l.common.pump.forget(h.tag)
	h.cancel(whyEnded(h.handle))
}

// Unlock ends Context, and releases the lock; the next waiter gets it at once. nil also if the
// owner of a reentrant lock has other leases. It blocks for at most command_timeout. The release is
// sent even if ctx has ended: then only its result is unknown. Errors:
//
//   - ErrLost: the lease had ended before; others may have held the lock since.
//   - ErrNotHeld: it was unlocked or detached before.
//   - ErrOutcomeUnknown: no answer came; the release continues in the background until the lease
//     would have ended.
func (l *Lease) Unlock(ctx context.Context) error {
	_, err := l.Release(ctx)
	return err
}

// Release is Unlock. It returns false if the owner of a reentrant lock has other leases.
func (l *Lease) Release(ctx context.Context) (free bool, err error) {
	l.endContext()
	status, failure := l.finish(ctx, "unlock", noWait, rlc.Release_start)
	if failure != nil {
		return false, failure
	}
	return status != ErrStillHeld, nil
}

// Extend extends the lease to ttl from now; later renewals use this ttl. A ttl below the remaining
// one shortens only the deadline of this process. It blocks for at most command_timeout. The error
// is ErrLost if the lease had ended.
func (l *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	if shown := partText(ttl); shown != "" {
		return &Error{Op: "extend", Name: l.Name(), Status: ErrInvalid,
			Message: fmt.Sprintf("ttl must be at least %d ms (got %s)", rlc.RL_MIN_TTL_MS, shown)}
	}
	return l.unlessEnded(ctx, "extend", noWait, func(handle rlc.Lease) rlc.Request {
		return rlc.Extend_start(handle, wholeMs(ttl))
	})
}

// Upgrade turns this reader into the writer, without a release in between. The only reader becomes
// the writer at once. Otherwise Upgrade waits at the head of the queue until the other readers have
// left, or ctx ends. If it fails, the lease continues to read, unless it was lost. The fence rises.
// Errors:
//
//   - ErrInvalid: a lease of a semaphore, which has no readers, or of several names.
//   - ErrDeadlock: another reader waits to upgrade, or the owner of this lease has another read
//     lease; unlock this one.
//   - ErrLost: the lease had ended.
func (l *Lease) Upgrade(ctx context.Context) error {
	wait := waitMs(ctx)
	return l.unlessEnded(ctx, "upgrade", wait, func(handle rlc.Lease) rlc.Request {
		return rlc.Rw_upgrade_start(handle, wait)
	})
}

// TryUpgrade is Upgrade with one try. The error is ErrBusy if there are other readers.
func (l *Lease) TryUpgrade(ctx context.Context) error {
	return l.unlessEnded(ctx, "upgrade", noWait, func(handle rlc.Lease) rlc.Request {
		return rlc.Rw_upgrade_start(handle, noWait)
	})
}

// Downgrade turns this writer into a reader, without a release in between. Readers that are next in
// the queue enter. It blocks for at most command_timeout. The error is ErrLost if the lease had
// ended, and ErrInvalid for a lease of several names.
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

// finish waits for the request of start. The status is OK, or ErrStillHeld, if there is no error.
func (l *Lease) finish(ctx context.Context, op string, wait int64,
	start func(rlc.Lease) rlc.Request) (Status, error) {
	defer runtime.KeepAlive(l)
	l.common.calls.Lock()
	request := start(l.hold.handle)
	l.common.calls.Unlock()
	if request == 0 {
		return ErrNoMemory, &Error{Op: op, Name: l.Name(), Status: ErrNoMemory}
	}
	defer l.common.free(request)
	status := l.common.pump.await(ctx, request)
	isDetachUnsent := op == "detach" && l.State() == StateHeld
	if status == ErrCancelled && op != "upgrade" && !isDetachUnsent {
		// It is sent, and continues by itself.
		return ErrOutcomeUnknown, endedError(ctx, op, l.Name(), ErrOutcomeUnknown)
	}
	if l.State() != StateHeld {
		l.common.own.drop(l.hold)
	}
	if status != OK && status != ErrStillHeld {
		return status, failed(ctx, op, l.Name(), status, request, wait)
	}
	return status, nil
}

// Detach hands the lease over to another process. It returns the token, which one Attach there can
// take. Renewal stops, and the lock stays until its ttl ends. Store Fence beside the token. Detach
// blocks for at most command_timeout. Errors:
//
//   - ErrLost: the lease was lost.
//   - ErrNotHeld: it was unlocked or detached before.
//   - ErrOutcomeUnknown: no answer came, or ctx ended after the call was sent; the lease is no
//     longer held here, and another process may be able to attach it with Token.
//   - ErrInvalid: the lease has several names; it is held as before.
//   - ErrUnavailable, ErrDenied, ErrServer, ErrCancelled: the lease is held as before.
//
// Context ends unless the lease is still held.
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

// WaitLost waits until the lease is no longer held. It returns nil if the lease was released or
// detached, and ErrLost if it was lost. If the lease is still held when ctx ends, errors.Is finds
// ctx.Err() and the cause of ctx.
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

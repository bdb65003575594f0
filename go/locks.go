// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"redlatch.io/redlatch/internal/rlc"
)

// Locks is what takes mutexes: a Client, or a Redlock.
type Locks interface {
	Lock(ctx context.Context, name string, options ...Option) (*Lease, error)
	TryLock(ctx context.Context, name string, options ...Option) (*Lease, error)
	Do(ctx context.Context, name string, work func(context.Context) error, options ...Option) error
}

// session is what a Client and a Redlock share. It has no pointer to them, so that they can be
// collected while a goroutine waits in the pump.
type session struct {
	pump pump
	// Calls wait for each other in the library too, but each with a thread.
	calls sync.Mutex
	// Leases that were dropped while they are held. They stay held: see leaveLease().
	leaked atomic.Int64
	lines  atomic.Pointer[logLines]         // what LogTo has started
	source atomic.Pointer[credentialSource] // what CredentialsFrom has started
	closed atomic.Bool
	own    ownLeases
}

func newSession(drive func(rlc.Queue)) *session {
	return &session{pump: pump{drive: drive}}
}

// starter starts an acquisition.
type starter func(name string, waitMs int64, options rlc.AcquireOptions) rlc.Request

// noWait is the wait of what tries once.
const noWait = 0

// waitMs is the time that ctx leaves, -1 for no limit. A little less than that, so that the library
// says what was in the way: busy, or not there. A context only says that the time is over.
func waitMs(ctx context.Context) int64 {
	deadline, ok := ctx.Deadline()
	if !ok {
		return -1
	}
	return max(time.Until(deadline).Milliseconds()-1, 1)
}

// take acquires, and ends when ctx does. The lease keeps client alive.
func (s *session) take(ctx context.Context, client any, op, name string, wait int64,
	options []Option, start starter) (*Lease, error) {
	if ctx.Err() != nil {
		return nil, endedError(ctx, op, name, ErrCancelled)
	}
	made, err := makeOptions(options)
	if err != nil {
		return nil, about(err, op, name)
	}
	s.calls.Lock()
	request := start(name, wait, made)
	s.calls.Unlock()
	rlc.Acquire_options_free(made)
	if request == 0 {
		return nil, &Error{Op: op, Name: name, Status: ErrNoMemory}
	}
	defer s.free(request)
	if wait != noWait {
		defer s.noticeSelfWait(name)()
	}
	if status := s.pump.await(ctx, request); status != OK {
		return nil, failed(ctx, op, name, status, request, wait)
	}
	handle := rlc.Request_take_lease(request)
	if handle == 0 {
		return nil, &Error{Op: op, Name: name, Status: ErrNoMemory}
	}
	lease := newLease(ctx, s, client, handle)
	s.own.add(name, lease.hold)
	return lease, nil
}

func (s *session) free(request rlc.Request) {
	s.calls.Lock()
	defer s.calls.Unlock()
	rlc.Request_free(request)
}

// failed is what request ended with. A try has not waited, so that ctx only counts if it is over.
func failed(ctx context.Context, op, name string, status Status, request rlc.Request,
	wait int64) *Error {
	err := &Error{Op: op, Name: name, Status: status, Message: rlc.Request_message(request)}
	switch {
	case status == ErrCancelled:
		err.Cause, err.ended = context.Cause(ctx), ctx.Err()
	case wait > 0 && status.Retryable():
		err.endedBy(ctx)
	}
	return err
}

func about(err error, op, name string) error {
	var found *Error
	if errors.As(err, &found) {
		found.Op, found.Name = op, name
	}
	return err
}

type leaseKey struct{}

// LeaseOf is the lease that Do or DoValue holds for the work with this context; nil if none does.
func LeaseOf(ctx context.Context) *Lease {
	lease, _ := ctx.Value(leaseKey{}).(*Lease)
	return lease
}

// do holds the lock name while work goes on, whose context ends with ctx or the lease.
func do(ctx context.Context, locks Locks, name string, work func(context.Context) error,
	options []Option) (err error) {
	lease, err := locks.Lock(ctx, name, options...)
	if err != nil {
		return err
	}
	inside, cancel := context.WithCancelCause(context.WithValue(ctx, leaseKey{}, lease))
	stop := context.AfterFunc(lease.Context(), func() {
		cancel(context.Cause(lease.Context()))
	})
	// Also when work panics.
	defer func() {
		stop()
		cancel(nil)
		failure := lease.Unlock(context.WithoutCancel(ctx))
		if failure != nil && !goesOn(statusOf(failure)) && !says(err, failure) {
			err = errors.Join(err, failure)
		}
	}()
	return work(inside)
}

// goesOn says that a release is repeated in the background until the lease would have ended: the
// work was protected to its end, and an error would call it a failure.
func goesOn(status Status) bool {
	switch status {
	case ErrOutcomeUnknown, ErrUnavailable, ErrServer, ErrDenied:
		return true
	}
	return false
}

// says reports whether err has what failure says of the same lock: work may return the cause of its
// context.
func says(err, failure error) bool {
	var found, other *Error
	return errors.As(err, &found) && errors.As(failure, &other) &&
		found.Name == other.Name && found.Status == other.Status
}

// DoValue is Do for work that has a result. The result counts only if the error is nil: one that Is
// ErrLost means that others may have worked at the same time.
func DoValue[T any](ctx context.Context, locks Locks, name string,
	work func(context.Context) (T, error), options ...Option) (T, error) {
	var result T
	err := locks.Do(ctx, name, func(ctx context.Context) error {
		var failure error
		result, failure = work(ctx)
		return failure
	}, options...)
	return result, err
}

// Locker is one lock as a sync.Locker, for code that wants one. It can say neither that it failed
// nor that the lock was lost; Lease has both.
type Locker struct {
	locks   Locks
	name    string
	options []Option
	// Held with the lease: when a lease was lost, its Unlock must not give back the next one.
	inside sync.Mutex
	lease  atomic.Pointer[Lease]
}

var _ sync.Locker = (*Locker)(nil)

// Lock waits as long as it takes. It panics with an *Error where it cannot: a wrong name, rights,
// a client that was closed.
func (l *Locker) Lock() {
	l.inside.Lock()
	lease, err := l.locks.Lock(context.Background(), l.name, l.options...)
	if err != nil {
		l.inside.Unlock()
		panic(err)
	}
	l.lease.Store(lease)
}

// TryLock says whether it got the lock at once. It panics as Lock does, but for ErrUnavailable and
// what else the same call may not find again, which are false.
func (l *Locker) TryLock() bool {
	if !l.inside.TryLock() {
		return false
	}
	lease, err := l.locks.TryLock(context.Background(), l.name, l.options...)
	if err != nil {
		l.inside.Unlock()
		if !statusOf(err).Retryable() {
			panic(err)
		}
		return false
	}
	l.lease.Store(lease)
	return true
}

// Unlock gives the lock back. It panics if it is not locked, as that of a sync.Mutex. That the lock
// was lost meanwhile is not said here: see Lease, and LogTo.
func (l *Locker) Unlock() {
	lease := l.lease.Swap(nil)
	if lease == nil {
		panic(&Error{Op: "unlock", Name: l.name, Status: ErrNotHeld})
	}
	_ = lease.Unlock(context.Background())
	l.inside.Unlock()
}

// Lease is the lease that the Locker holds, nil for none: its fence, and its context.
func (l *Locker) Lease() *Lease { return l.lease.Load() }

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

// Locks acquires locks: a Client, or a Redlock.
type Locks interface {
	Lock(ctx context.Context, name string, options ...Option) (*Lease, error)
	TryLock(ctx context.Context, name string, options ...Option) (*Lease, error)
	Do(ctx context.Context, name string, work func(context.Context) error, options ...Option) error
}

// common has the parts that a Client and a Redlock share. It has no pointer to them, so that they
// can be collected while a goroutine waits in the pump.
type common struct {
	pump pump
	// Calls wait for each other in the library too, but each with a thread.
	calls sync.Mutex
	// Leases that were dropped while they are held. They stay held: see leaveLease().
	leaked atomic.Int64
	lines  atomic.Pointer[logLines]         // what LogTo has started
	source atomic.Pointer[credentialSource] // what CredentialsFrom has started
	closed atomic.Bool
	ended  chan struct{} // closed with the client
	own    ownLeases
}

func newCommon(drive func(rlc.Queue)) *common {
	return &common{pump: pump{drive: drive}, ended: make(chan struct{})}
}

// starter starts an acquisition.
type starter func(name string, waitMs int64, options rlc.AcquireOptions) rlc.Request

// noWait is the wait of one try.
const noWait = 0

// waitMs returns the time that ctx leaves, -1 for no limit. It is a little less, so that the
// library reports the cause, busy or unavailable: the error of a context has no cause.
func waitMs(ctx context.Context) int64 {
	deadline, ok := ctx.Deadline()
	if !ok {
		return -1
	}
	return max(time.Until(deadline).Milliseconds()-1, 1)
}

// take acquires a lock that a goroutine should not wait for while its own client holds it.
func (s *common) take(ctx context.Context, client any, op, name string, wait int64,
	options []Option, start starter) (*Lease, error) {
	if wait != noWait {
		defer s.noticeSelfWait(name)()
	}
	lease, err := s.acquire(ctx, client, op, name, wait, options, start)
	if err == nil {
		s.own.add(name, lease.hold)
	}
	return lease, err
}

// acquire ends when ctx does. The lease keeps client alive.
func (s *common) acquire(ctx context.Context, client any, op, name string, wait int64,
	options []Option, start starter) (*Lease, error) {
	request, err := s.granted(ctx, op, name, wait, options, start)
	if err != nil {
		return nil, err
	}
	defer s.free(request)
	handle := rlc.Request_take_lease(request)
	if handle == 0 {
		return nil, &Error{Op: op, Name: name, Status: ErrNoMemory}
	}
	return newLease(ctx, s, client, handle), nil
}

// granted waits until the request of start has succeeded, or ctx has ended.
func (s *common) granted(ctx context.Context, op, name string, wait int64, options []Option,
	start starter) (rlc.Request, error) {
	if ctx.Err() != nil {
		return 0, endedError(ctx, op, name, ErrCancelled)
	}
	made, err := makeOptions(options)
	if err != nil {
		return 0, about(err, op, name)
	}
	s.calls.Lock()
	request := start(name, wait, made)
	s.calls.Unlock()
	rlc.Acquire_options_free(made)
	if request == 0 {
		return 0, &Error{Op: op, Name: name, Status: ErrNoMemory}
	}
	if status := s.pump.await(ctx, request); status != OK {
		defer s.free(request)
		return 0, failed(ctx, op, name, status, request, wait)
	}
	return request, nil
}

func (s *common) free(request rlc.Request) {
	s.calls.Lock()
	defer s.calls.Unlock()
	rlc.Request_free(request)
}

// failed returns the error of request. A try has not waited, so that ctx only counts if it has
// ended.
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

// LeaseOf returns the lease that Do, DoValue or Lead holds for the work with this context; nil if
// ctx is not such a context.
func LeaseOf(ctx context.Context) *Lease {
	lease, _ := ctx.Value(leaseKey{}).(*Lease)
	return lease
}

// do holds the lock name while work runs, whose context ends with ctx or the lease.
func do(ctx context.Context, locks Locks, name string, work func(context.Context) error,
	options []Option) error {
	lease, err := locks.Lock(ctx, name, options...)
	if err != nil {
		return err
	}
	return lease.during(ctx, work, func(bool) error { return lease.unlockAfterWork(ctx) })
}

// during runs work, whose context ends with ctx or the lease, and then finish, which releases the
// lease. hasSucceeded is false if work has failed or panicked.
func (l *Lease) during(ctx context.Context, work func(context.Context) error,
	finish func(hasSucceeded bool) error) (err error) {
	inside, cancel := context.WithCancelCause(context.WithValue(ctx, leaseKey{}, l))
	stop := context.AfterFunc(l.Context(), func() {
		cancel(context.Cause(l.Context()))
	})
	hasSucceeded := false
	// Also when work panics.
	defer func() {
		stop()
		cancel(nil)
		if failure := finish(hasSucceeded); failure != nil && !says(err, failure) {
			err = errors.Join(err, failure)
		}
	}()
	err = work(inside)
	hasSucceeded = err == nil
	return err
}

// unlockAfterWork is Unlock, also if ctx has ended. A release that is repeated in the background is
// no failure.
func (l *Lease) unlockAfterWork(ctx context.Context) error {
	failure := l.Unlock(context.WithoutCancel(ctx))
	if failure != nil && goesOn(statusOf(failure)) {
		return nil
	}
	return failure
}

// finishAfterWork releases the lease by start, which also notes how the work went; also if ctx has
// ended. A request that is repeated in the background is no failure.
func (l *Lease) finishAfterWork(ctx context.Context, op string,
	start func(rlc.Lease) rlc.Request) error {
	l.endContext()
	_, err := l.finish(context.WithoutCancel(ctx), op, noWait, start)
	if err == nil {
		return nil
	}
	if l.State() == StateHeld {
		_ = l.unlockAfterWork(ctx) // err says that nothing was noted.
	}
	switch statusOf(err) {
	case ErrOutcomeUnknown, ErrUnavailable:
		return nil
	}
	return err
}

// goesOn reports whether a release is repeated in the background until the lease would have ended.
// The work was protected to its end, and an error would call it a failure.
func goesOn(status Status) bool {
	switch status {
	case ErrOutcomeUnknown, ErrUnavailable, ErrServer, ErrDenied:
		return true
	}
	return false
}

// says reports whether err already has failure, for the same lock: work may return the cause of its
// context.
func says(err, failure error) bool {
	var found, other *Error
	return errors.As(err, &found) && errors.As(failure, &other) &&
		found.Name == other.Name && found.Status == other.Status
}

// DoValue is Do for work that has a result. Use the result only if the error is nil: after ErrLost
// others may have worked at the same time.
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

// Locker is one lock as a sync.Locker, for code that wants one. Its methods cannot report an error
// or a loss; those of Lease can.
type Locker struct {
	locks   Locks
	name    string
	options []Option
	// Locked with the lease: the Unlock of a lost lease must not release the next lease.
	inside sync.Mutex
	lease  atomic.Pointer[Lease]
}

var _ sync.Locker = (*Locker)(nil)

// Lock waits without a limit. It panics with an *Error if it cannot acquire, for example because
// the name is wrong, a right is missing, or the client was closed.
func (l *Locker) Lock() {
	l.inside.Lock()
	lease, err := l.locks.Lock(context.Background(), l.name, l.options...)
	if err != nil {
		l.inside.Unlock()
		panic(err)
	}
	l.lease.Store(lease)
}

// TryLock tries once, and reports whether it acquired the lock. It panics as Lock does, except
// after ErrUnavailable and other errors that are Retryable, which are false.
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

// Unlock releases the lock. It panics if the lock is not locked, as a sync.Mutex does. It does not
// report a loss: see Lease, and LogTo.
func (l *Locker) Unlock() {
	lease := l.lease.Swap(nil)
	if lease == nil {
		panic(&Error{Op: "unlock", Name: l.name, Status: ErrNotHeld})
	}
	_ = lease.Unlock(context.Background())
	l.inside.Unlock()
}

// Lease returns the lease that the Locker holds, for its fence and its context; nil if it holds
// none.
func (l *Locker) Lease() *Lease { return l.lease.Load() }

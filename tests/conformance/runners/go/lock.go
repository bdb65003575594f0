// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package main

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"redlatch.io/redlatch"
)

const attachCount = 64

// lock is a named lock of a case: how it is taken, and its last lease.
type lock struct {
	kind, name, owner string
	permits, limit    int64 // of a semaphore
	names             []redlatch.NamedMode
	options           []redlatch.Option
	lease             atomic.Pointer[redlatch.Lease]
	started           *started
	leading           *leading
	leaders           <-chan redlatch.Leader // what its observer sees; nil before that
}

// started is what goes on by itself. Whoever sees done closed may look at the rest.
type started struct {
	cancel  context.CancelFunc
	done    chan struct{}
	lease   *redlatch.Lease // nil once it is the lock's; an upgrade has none
	failure error
}

var ofLock = map[string]func(*lock, values) answer{
	"acquire":        acquiring("acquire"),
	"acquire_read":   acquiring("acquire_read"),
	"acquire_write":  acquiring("acquire_write"),
	"start":          starting("acquire"),
	"start_read":     starting("acquire_read"),
	"start_write":    starting("acquire_write"),
	"start_upgrade":  doStartUpgrade,
	"poll":           doPoll,
	"cancel":         doCancel,
	"upgrade":        doUpgrade,
	"downgrade":      doDowngrade,
	"attach":         doAttach,
	"attach_all":     doAttachAll,
	"release":        doRelease,
	"check":          doCheck,
	"extend":         doExtend,
	"wait_lost":      doWaitLost,
	"show":           doShow,
	"detach":         doDetach,
	"stats":          doStats,
	"once":           doOnce,
	"flight":         doFlight,
	"campaign":       doCampaign,
	"start_campaign": doStartCampaign,
	"observe":        doObserve,
	"recalled":       doRecalled,
	"lead":           doLead,
	"event":          doEvent,
	"stop":           doStop,
}

// ---- to take it ---------------------------------------------------------------------------------

type taking func(context.Context, string, ...redlatch.Option) (*redlatch.Lease, error)

// ways are to wait for the lock, and to try.
func (l *lock) ways(op string) (wait, try taking) {
	switch {
	case op == "acquire_read":
		return client.RLock, client.TryRLock
	case op == "acquire_write":
		return client.WLock, client.TryWLock
	case l.kind == "reentrant":
		owned := client.Reentrant(l.owner)
		return owned.Lock, owned.TryLock
	case l.kind == "semaphore" && client != nil:
		return l.waysOfSemaphore(client)
	case l.kind == "all" && client != nil:
		return l.waysOfAll(client)
	case l.kind == "all":
		return noSuchLock, noSuchLock
	}
	return service.Lock, service.TryLock
}

func (l *lock) semaphore(client *redlatch.Client) *redlatch.Semaphore {
	return client.Semaphore(cut(l.name), l.limit, l.options...)
}

func (l *lock) waysOfSemaphore(client *redlatch.Client) (wait, try taking) {
	semaphore := l.semaphore(client)
	of := func(take func(context.Context, int64) (*redlatch.Lease, error)) taking {
		return func(ctx context.Context, _ string, _ ...redlatch.Option) (*redlatch.Lease, error) {
			return take(ctx, l.permits)
		}
	}
	return of(semaphore.Acquire), of(semaphore.TryAcquire)
}

// noSuchLock is for a Redlock, which has no method for it.
func noSuchLock(context.Context, string, ...redlatch.Option) (*redlatch.Lease, error) {
	return nil, &redlatch.Error{Op: "lock-all", Status: redlatch.ErrUnsupported}
}

func (l *lock) waysOfAll(client *redlatch.Client) (wait, try taking) {
	type all = func(context.Context, []redlatch.NamedMode, ...redlatch.Option) (*redlatch.Lease, error)
	of := func(take all) taking {
		return func(ctx context.Context, _ string, options ...redlatch.Option) (*redlatch.Lease, error) {
			return take(ctx, l.names, options...)
		}
	}
	return of(client.LockAll), of(client.TryLockAll)
}

func (l *lock) take(ctx context.Context, op string, v values) (*redlatch.Lease, error) {
	take, try := l.ways(otherMode(op))
	if v.isTry() {
		take = try
	}
	return unheard(ctx, func(ctx context.Context) (*redlatch.Lease, error) {
		return take(ctx, cut(l.name), l.options...)
	})
}

func (l *lock) granted(lease *redlatch.Lease, err error) answer {
	done := answered(err)
	if err == nil {
		l.lease.Store(lease)
		done.add("fence", lease.Fence())
		done.add("token", lease.Token())
		done.add("mode", lease.Mode())
		done.add("hold_count", lease.HoldCount())
		if l.kind == "semaphore" {
			done.add("permits", lease.Permits())
		}
		if l.kind == "all" {
			done.add("second_fence", lease.Fences()[l.names[1].Name])
		}
	}
	return done
}

func acquiring(op string) func(*lock, values) answer {
	return func(l *lock, v values) answer {
		ctx, cancel := v.context()
		defer cancel()
		return l.granted(l.take(ctx, op, v))
	}
}

func (l *lock) attach(v values) (*redlatch.Lease, error) {
	fence, _ := strconv.ParseInt(v["fence"], 10, 64)
	if l.kind == "semaphore" {
		return l.semaphore(client).AttachFence(context.Background(), l.permits, v["token"], fence)
	}
	if _, isGiven := v["fence"]; !isGiven {
		return client.Attach(context.Background(), cut(l.name), v["token"], l.options...)
	}
	return client.AttachFence(context.Background(), cut(l.name), v["token"], fence, l.options...)
}

func doAttach(l *lock, v values) answer { return l.granted(l.attach(v)) }

func doAttachAll(l *lock, v values) answer {
	var refused atomic.Int32
	var all sync.WaitGroup
	leases := make(chan *redlatch.Lease, attachCount)
	begin := make(chan struct{})
	for i := 0; i < attachCount; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			<-begin
			lease, err := l.attach(v)
			if err == nil {
				leases <- lease
			} else if errors.Is(err, redlatch.ErrNotHeld) {
				refused.Add(1)
			}
		}()
	}
	close(begin)
	all.Wait()
	close(leases)
	done := answer{}
	done.add("granted", len(leases))
	done.add("refused", refused.Load())
	for lease := range leases {
		l.lease.Store(lease)
		done.add("fence", lease.Fence())
		done.add("token", lease.Token())
		done.add("mode", lease.Mode())
	}
	return done
}

func (l *lock) start(v values, work func(context.Context) (*redlatch.Lease, error)) answer {
	ctx, cancel := v.context()
	s := &started{cancel: cancel, done: make(chan struct{})}
	l.started = s
	go func() {
		defer close(s.done)
		s.lease, s.failure = work(ctx)
	}()
	return answer{status: redlatch.ErrPending}
}

func starting(op string) func(*lock, values) answer {
	return func(l *lock, v values) answer {
		return l.start(v, func(ctx context.Context) (*redlatch.Lease, error) {
			return l.take(ctx, op, v)
		})
	}
}

func doStartUpgrade(l *lock, v values) answer {
	return l.start(v, func(ctx context.Context) (*redlatch.Lease, error) {
		return nil, l.upgrade(ctx, v)
	})
}

func doPoll(l *lock, v values) answer {
	var isOver <-chan time.Time
	if v.number("wait_ms") >= 0 {
		isOver = time.After(v.duration("wait_ms"))
	}
	select {
	case <-l.started.done:
	case <-isOver:
		select {
		case <-l.started.done:
		default:
			return answer{status: redlatch.ErrPending}
		}
	}
	return l.result()
}

func doCancel(l *lock, _ values) answer {
	l.started.cancel()
	<-l.started.done
	return l.result()
}

// result shows what was granted once.
func (l *lock) result() answer {
	lease := l.started.lease
	l.started.lease = nil
	if lease == nil {
		return answered(l.started.failure)
	}
	return l.granted(lease, nil)
}

// ---- to use it ----------------------------------------------------------------------------------

func (l *lock) upgrade(ctx context.Context, v values) error {
	if v.isTry() {
		return l.lease.Load().TryUpgrade(ctx)
	}
	return l.lease.Load().Upgrade(ctx)
}

func doUpgrade(l *lock, v values) answer {
	ctx, cancel := v.context()
	defer cancel()
	return answered(l.upgrade(ctx, v))
}

func doDowngrade(l *lock, _ values) answer {
	return answered(l.lease.Load().Downgrade(context.Background()))
}

// doRelease gives back what users give back so: only a lock that can be held more than once is
// asked whether it is free.
func doRelease(l *lock, _ values) answer {
	lease := l.lease.Load()
	if lease == nil {
		// Go has no lock object: what never held has no lease, and there is nothing to call.
		return answer{status: redlatch.ErrNotHeld}
	}
	if defect == "ignore_release" {
		return answer{}
	}
	if l.kind == "mutex" {
		return answered(lease.Unlock(context.Background()))
	}
	isFree, err := lease.Release(context.Background())
	if err == nil && !isFree && defect != "forget_count" {
		return answer{status: redlatch.ErrStillHeld}
	}
	return answered(err)
}

func doCheck(l *lock, _ values) answer { return answered(l.lease.Load().Check()) }

func doExtend(l *lock, v values) answer {
	return answered(l.lease.Load().Extend(context.Background(), v.duration("ttl_ms")))
}

func doWaitLost(l *lock, v values) answer {
	ctx, cancel := v.context()
	defer cancel()
	if v.isTry() {
		cancel()
	}
	lease, done := l.lease.Load(), answer{}
	err := lease.WaitLost(ctx)
	cause := context.Cause(ctx)
	switch {
	case cause != nil && errors.Is(err, cause):
		done.add("state", redlatch.StateHeld)
	case errors.Is(err, redlatch.ErrLost):
		done.add("state", redlatch.StateLost)
	case err != nil:
		return answered(err)
	case lease.State() == redlatch.StateHeld: // its context ends before the release is sent
		done.add("state", redlatch.StateReleased)
	default:
		done.add("state", lease.State())
	}
	return done
}

func doShow(l *lock, _ values) answer {
	lease, done := l.lease.Load(), answer{}
	done.add("state", lease.State())
	done.add("remaining_ms", lease.Remaining().Milliseconds())
	done.add("fence", lease.Fence())
	done.add("mode", lease.Mode())
	reason, _ := lease.LostReason()
	done.add("lost", reason)
	leads := 0
	if lease.Check() == nil {
		leads = 1
	}
	done.add("leads", leads)
	return done
}

func doDetach(l *lock, v values) answer {
	token, err := l.lease.Load().Detach(context.Background())
	if err != nil {
		return answered(err)
	}
	done := doShow(l, v)
	done.add("token", token)
	return done
}

func doStats(l *lock, _ values) answer {
	stats, err := l.semaphore(client).Stats(context.Background())
	done := answered(err)
	if err == nil {
		done.add("used", stats.Used)
		done.add("limit", stats.Limit)
		done.add("cap", stats.Cap)
		done.add("waiting", stats.Waiting)
	}
	return done
}

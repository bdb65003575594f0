// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// Package gocronlock lets the schedulers of gocron v2 on many hosts share their jobs, by the locks
// of redlatch. With a Locker each job runs in one scheduler at a time. With an Elector all jobs run
// in one scheduler.
//
//	locker := gocronlock.New(client, time.Second)
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//	_, err = scheduler.NewJob(gocron.CronJob("0 2 * * *", false),
//		gocron.NewTask(report), gocron.WithName("report"))
//
// # When the lock is lost
//
// gocron does not check a lock while its job runs, and drops the error of its Unlock. So a job that
// has lost its lock is not stopped, and another scheduler may run it too. The server was away for
// longer than the TTL, for example, or an operator forced the release. A job for which that matters
// uses its lease: Context of Locker.Lease ends with the loss, and the resource checks Fence.
// redlatch.LogTo writes a line for each loss.
package gocronlock

import (
	"context"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"redlatch.io/redlatch"
)

// Locker is a gocron.Locker, for gocron.WithDistributedLocker and gocron.WithDistributedJobLocker.
// Any number of schedulers may use one.
type Locker struct {
	locks   redlatch.Locks
	minHold time.Duration
	options []redlatch.Option
	mu      sync.Mutex
	running map[string]*redlatch.Lease
}

var _ gocron.Locker = (*Locker)(nil)

// New makes a Locker of a redlatch.Client or Redlock. The lock of a job has the job's name: set it
// by gocron.WithName. redlatch.WithNamespace keeps it apart from other locks.
//
// A lock is kept for at least minHold, even if its job ends earlier. Two hosts do not begin a job
// at the same instant, and the second one must not begin it after the first one is done. So minHold
// must be longer than the difference of their clocks, and shorter than the time between two runs of
// a job. Closing the client releases the lock at once.
func New(locks redlatch.Locks, minHold time.Duration, options ...redlatch.Option) *Locker {
	return &Locker{
		locks:   locks,
		minHold: minHold,
		options: options,
		running: make(map[string]*redlatch.Lease),
	}
}

// Lock is called by gocron before it runs the job of this name. It tries once: the error is
// redlatch.ErrBusy if another scheduler runs the job. gocron then leaves out this run, as it does
// if the server is away. gocron.AfterLockError reports both.
func (l *Locker) Lock(ctx context.Context, name string) (gocron.Lock, error) {
	lease, err := l.locks.TryLock(ctx, name, l.options...)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[name] = lease
	return &lock{l, lease, time.Now().Add(l.minHold)}, nil
}

// Lease returns the lease of the job of this name while it runs; nil if it does not run in this
// process. The job calls it once, when it begins: after a loss, a later call could return the lease
// of a later run.
func (l *Locker) Lease(name string) *redlatch.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running[name]
}

// forget removes the run of lease. After a loss, a later run may be under way already.
func (l *Locker) forget(lease *redlatch.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running[lease.Name()] == lease {
		delete(l.running, lease.Name())
	}
}

// lock is the lock of one run, for gocron.
type lock struct {
	locker *Locker
	lease  *redlatch.Lease
	until  time.Time // not released before
}

// Unlock is called by gocron after the run. It waits for the server, but not for minHold.
func (h *lock) Unlock(ctx context.Context) error {
	h.locker.forget(h.lease)
	left := time.Until(h.until)
	if left <= 0 || h.lease.Check() != nil {
		return h.lease.Unlock(ctx)
	}
	time.AfterFunc(left, func() { _ = h.lease.Unlock(context.Background()) })
	return nil
}

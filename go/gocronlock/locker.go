// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// Package gocronlock lets the schedulers of gocron v2 on many hosts share their jobs, by the locks
// of redlatch: a Locker has each job run by one of them at a time, an Elector has all jobs run by
// one of them.
//
//	locker := gocronlock.New(client, time.Second)
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//	_, err = scheduler.NewJob(gocron.CronJob("0 2 * * *", false),
//		gocron.NewTask(report), gocron.WithName("report"))
//
// # When the lock is lost
//
// gocron does not look at a lock while its job runs, and drops the error of its Unlock. A job that
// has lost its lock, because the server was away for longer than the TTL or somebody forced it, is
// therefore not stopped, and another scheduler may run it too. A job for which that matters looks
// at its lease: Context of Locker.Lease ends with the loss, and Fence goes to what it writes to.
// redlatch.LogTo writes down each loss.
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

// New makes a Locker of a redlatch.Client or Redlock. The lock of a job has the job's name, which
// is best given by gocron.WithName; redlatch.WithNamespace keeps them apart from other locks.
//
// A lock is kept for minHold at least, also when its job has ended before: two hosts do not begin a
// job at the same instant, and the second must not begin it when the first is done. So minHold is
// longer than their clocks differ, and shorter than the time from one run of a job to the next. A
// client that is closed meanwhile gives it back at once.
func New(locks redlatch.Locks, minHold time.Duration, options ...redlatch.Option) *Locker {
	return &Locker{
		locks:   locks,
		minHold: minHold,
		options: options,
		running: make(map[string]*redlatch.Lease),
	}
}

// Lock is called by gocron before it runs the job of this name. It does not wait: the error Is
// redlatch.ErrBusy if another scheduler runs the job, and gocron then leaves out this run, as it
// does if the server is away. gocron.AfterLockError tells of either.
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

// Lease is that of the job of this name while it runs, for the job itself, which asks for it once,
// when it begins: after a loss it would get that of a later run. nil if it does not run in this
// process.
func (l *Locker) Lease(name string) *redlatch.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running[name]
}

// forget that the job of lease runs. After a loss, a later run may be under way already.
func (l *Locker) forget(lease *redlatch.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running[lease.Name()] == lease {
		delete(l.running, lease.Name())
	}
}

// lock is what gocron holds during one run.
type lock struct {
	locker *Locker
	lease  *redlatch.Lease
	until  time.Time // not given back before
}

// Unlock is called by gocron after the run, and waits for the server, but not for minHold.
func (h *lock) Unlock(ctx context.Context) error {
	h.locker.forget(h.lease)
	left := time.Until(h.until)
	if left <= 0 || h.lease.Check() != nil {
		return h.lease.Unlock(ctx)
	}
	time.AfterFunc(left, func() { _ = h.lease.Unlock(context.Background()) })
	return nil
}

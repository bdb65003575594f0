// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package gocronlock

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/go-co-op/gocron/v2"

	"redlatch.io/redlatch"
)

// Elector is a gocron.Elector, for gocron.WithDistributedElector: one scheduler of all that use the
// same name leads, and runs all jobs, until its client is closed or its lock is lost. It stands for
// election whenever a job is due.
type Elector struct {
	locks   redlatch.Locks
	name    string
	options []redlatch.Option
	asking  sync.Mutex // one IsLeader at a time
	lease   atomic.Pointer[redlatch.Lease]
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector makes an Elector of a redlatch.Client or Redlock, whose lock has this name.
func NewElector(locks redlatch.Locks, name string, options ...redlatch.Option) *Elector {
	return &Elector{locks: locks, name: name, options: options}
}

// IsLeader is called by gocron before it runs any job: nil if this scheduler leads, and may go on
// to by the local clock. The error Is redlatch.ErrBusy if another one does.
func (e *Elector) IsLeader(ctx context.Context) error {
	e.asking.Lock()
	defer e.asking.Unlock()
	if lease := e.lease.Load(); lease != nil && lease.Check() == nil {
		return nil
	}
	lease, err := e.locks.TryLock(ctx, e.name, e.options...)
	e.lease.Store(lease)
	return err
}

// Lease is that of the lead, for the jobs: its Context ends when the lead is lost. nil if another
// scheduler led when this one was last asked.
func (e *Elector) Lease() *redlatch.Lease { return e.lease.Load() }

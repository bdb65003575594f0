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

// Elector is a gocron.Elector, for gocron.WithDistributedElector. One of the schedulers that use
// the same name leads and runs all jobs, until its client is closed or its lock is lost. An Elector
// tries to become the leader whenever a job is due.
type Elector struct {
	locks   redlatch.Locks
	name    string
	options []redlatch.Option
	asking  sync.Mutex // one IsLeader at a time
	lease   atomic.Pointer[redlatch.Lease]
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector makes an Elector of a redlatch.Client or Redlock, with a lock of this name.
func NewElector(locks redlatch.Locks, name string, options ...redlatch.Option) *Elector {
	return &Elector{locks: locks, name: name, options: options}
}

// IsLeader is called by gocron before it runs a job. It returns nil while this scheduler leads, by
// the local clock. The error is redlatch.ErrBusy if another scheduler leads.
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

// Lease returns the lease of the leader, for its jobs: its Context ends when the lead is lost. nil
// if another scheduler led at the last IsLeader.
func (e *Elector) Lease() *redlatch.Lease { return e.lease.Load() }

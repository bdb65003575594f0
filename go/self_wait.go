// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"redlatch.io/redlatch/internal/rlc"
)

// selfWaitNotice is how long a goroutine waits before the log says that the lock is the client's
// own. Tests change it.
var selfWaitNotice = func() *atomic.Int64 {
	limit := &atomic.Int64{}
	limit.Store(int64(10 * time.Second))
	return limit
}()

// ownLeases are the latest leases of a client by name, while they may be held. Goroutines have no
// identity, so that a wait for one of them is all that can be noticed.
type ownLeases struct {
	mu     sync.Mutex
	byName map[string]*hold
	// The notice was given. One is enough: it may be another goroutine that has the lease.
	isNoticed atomic.Bool
}

func (o *ownLeases) add(name string, h *hold) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byName == nil {
		o.byName = make(map[string]*hold)
	}
	h.name = name
	o.byName[name] = h
}

func (o *ownLeases) get(name string) *hold {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.byName[name]
}

func (o *ownLeases) drop(h *hold) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byName[h.name] == h {
		delete(o.byName, h.name)
	}
}

func (h *hold) isHeld() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.handle != 0 && State(rlc.Lease_state(h.handle)) == StateHeld
}

// noticeSelfWait writes a line if the wait for the lock name that begins now is long, and a lease
// of this client was in the way all the time. stop ends that.
func (s *common) noticeSelfWait(name string) (stop func() bool) {
	h := s.own.get(name)
	if h == nil || s.own.isNoticed.Load() {
		return func() bool { return false }
	}
	limit := time.Duration(selfWaitNotice.Load())
	return time.AfterFunc(limit, func() {
		if h.isHeld() && !s.own.isNoticed.Swap(true) {
			s.warn("lock " + quoted(name) + ": a goroutine waits for a lock that this client holds " +
				"itself; if it is the one that has locked it, the wait has no end (see Reentrant)")
		}
	}).Stop
}

// warn writes to the logger of LogTo until it is stopped, else to the default one.
func (s *common) warn(text string) {
	if lines := s.lines.Load(); lines != nil && lines.warn(text) {
		return
	}
	slog.Default().Warn(text, "source", "redlatch")
}

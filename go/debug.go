// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"

	"redlatch.io/redlatch/internal/rlc"
)

// Leak is a client or a lease that was dropped before it was ended.
type Leak struct {
	What  string // "client", "redlock" or "lease"
	Name  string // name of the lock of a lease
	Stack string // stack of its maker, if ReportLeaks was called before
}

var reporter atomic.Pointer[func(Leak)]

// ReportLeaks makes the runtime call report, in a goroutine, for each client that was dropped
// without Close, and for each lease that was dropped while it was held. From then on each of them
// keeps the stack of its maker, which costs some microseconds: use it in tests, and to find a leak.
// nil ends it.
func ReportLeaks(report func(Leak)) {
	if report == nil {
		reporter.Store(nil)
		return
	}
	reporter.Store(&report)
}

func reportLeak(what, name string, made *origin) {
	if report := reporter.Load(); report != nil {
		(*report)(Leak{what, name, made.String()})
	}
}

// origin is the stack of a maker; nil without ReportLeaks.
type origin struct {
	callers [32]uintptr
	count   int
}

func newOrigin() *origin {
	if reporter.Load() == nil {
		return nil
	}
	made := &origin{}
	made.count = runtime.Callers(3, made.callers[:])
	return made
}

func (o *origin) String() string {
	if o == nil {
		return ""
	}
	var lines strings.Builder
	frames := runtime.CallersFrames(o.callers[:o.count])
	for {
		frame, more := frames.Next()
		fmt.Fprintf(&lines, "%s\n\t%s:%d\n", frame.Function, frame.File, frame.Line)
		if !more {
			return lines.String()
		}
	}
}

// leaveLease runs when no reference to the lease is left. A held lease stays held: its work may not
// have ended, and a collector must not release a lock.
func leaveLease(l *Lease) {
	if l.State() == StateHeld {
		l.common.leaked.Add(1)
		reportLeak("lease", l.Name(), l.origin)
		return
	}
	l.common.own.drop(l.hold)
	l.endContext() // Others may still have it, and the pump may not have ended it yet.
	h := l.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	rlc.Lease_free(h.handle)
	h.handle = 0
}

// leave runs when no reference to the client or Redlock, or to a lease of it, is left.
func (c *base) leave(what string) {
	c.common.pump.close()
	if lines := c.common.lines.Load(); lines != nil {
		lines.stop()
	}
	if source := c.common.source.Load(); source != nil {
		source.stop()
	}
	if !c.common.closed.Load() {
		reportLeak(what, "", c.origin)
		// It continues to renew them.
		if c.common.leaked.Load() > 0 {
			return
		}
	}
	// It waits for the server, and all finalizers share a goroutine.
	go rlc.Client_close(c.handle)
}

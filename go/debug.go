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

// Leak is something that was dropped before it was ended.
type Leak struct {
	What  string // "client", "redlock" or "lease"
	Name  string // of the lock, if it was a lease
	Stack string // where it was made, if ReportLeaks was called before
}

var reporter atomic.Pointer[func(Leak)]

// ReportLeaks has report called, by a goroutine of the runtime, for each client that was dropped
// without Close and each lease that was dropped while it was held. From then on each keeps the
// stack of its maker, which costs some microseconds: for tests, and for looking for a leak. nil
// ends that.
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

// origin is where something was made; nil where nobody asks.
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

// leaveLease runs when nobody has the lease any more. One that is held stays so: nobody knows
// whether the work it was for has ended, and a lock must not be given away by a collector.
func leaveLease(l *Lease) {
	if l.State() == StateHeld {
		l.session.leaked.Add(1)
		reportLeak("lease", l.Name(), l.origin)
		return
	}
	l.session.own.drop(l.hold)
	l.endContext() // Others may have it still, and the pump may not have told them yet.
	h := l.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	rlc.Lease_free(h.handle)
	h.handle = 0
}

// leave runs when no reference to the client or Redlock, or to a lease of it, is left.
func (c *base) leave(what string) {
	c.session.pump.close()
	if lines := c.session.lines.Load(); lines != nil {
		lines.stop()
	}
	if source := c.session.source.Load(); source != nil {
		source.stop()
	}
	if !c.session.closed.Load() {
		reportLeak(what, "", c.origin)
		// It goes on renewing for them.
		if c.session.leaked.Load() > 0 {
			return
		}
	}
	// It waits for the server, and all finalizers share a goroutine.
	go rlc.Client_close(c.handle)
}

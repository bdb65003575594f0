// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package main

import (
	"context"
	"time"

	"redlatch.io/redlatch"
)

// leading is a Lead in a goroutine of its own, and what its work has seen.
type leading struct {
	cancel context.CancelFunc
	events chan event
	ended  chan error
}

type event struct {
	kind string
	term int64
}

const mostEvents = 64

func doLead(l *lock, v values) answer {
	ctx, cancel := context.WithCancel(context.Background())
	led := &leading{cancel, make(chan event, mostEvents), make(chan error, 1)}
	l.leading = led
	options := l.candidate(v).options
	go func() { led.ended <- client.Lead(ctx, cut(l.name), led.work, options...) }()
	return answer{}
}

// work leads until its context says that it leads no more.
func (d *leading) work(ctx context.Context, term redlatch.Term) error {
	d.events <- event{"elected", term.Number}
	<-ctx.Done()
	d.events <- event{"revoked", term.Number}
	return nil
}

func doEvent(l *lock, v values) answer {
	select {
	case one := <-l.leading.events:
		done := answer{}
		done.add("event", one.kind)
		done.add("term", one.term)
		return done
	case <-time.After(v.duration("wait_ms")):
		return answer{status: redlatch.ErrTimeout}
	}
}

// doStop ends Lead by its context, whose error is then that of Lead.
func doStop(l *lock, _ values) answer {
	l.leading.cancel()
	if err := <-l.leading.ended; err != context.Canceled {
		return answered(err)
	}
	return answer{}
}

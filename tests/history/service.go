// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package main

import (
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// The service as one object that does one thing after the other. Porcupine looks for an order of
// the definite answers that it could have given.
//
// Expiry is an operation that nobody calls: it may happen before a grant or a loss, from the time
// on at which the lease can be over, and a refusal counts only until the lease must be over. A step
// keeps the earliest time at which it can have happened, so no operation is added for it.
//
// What has no definite answer is not in the history, because it may have happened never: a release
// of unknown outcome lets the owner be gone from its call on (lease.openFrom), an extension lets it
// stay for as long as it likes (lease.goneBy), an acquire lets others be refused (event.others).
type event struct {
	kind      string // grant, refusal, release, extend, loss
	lease     *lease // of a grant, and of a loss
	op        *op
	call, ret int64
	others    bool  // somebody else may have waited, or held without knowing it
	goneBy    int64 // what was extended is over by then
}

type state struct {
	owner     *lease // nil: free
	fence     int64  // the last that was granted; -1 is any
	token     string // the last that was granted
	leaseEnds int64  // of that, on the server, at the earliest
	goneBy    int64  // at the latest
	now       int64
}

// apply is one step. A text is why it cannot be.
func (s state) apply(e *event) (state, string) {
	s.now = max(s.now, e.call)
	if s.now > e.ret {
		return s, "it had returned before that could be so"
	}
	switch e.kind {
	case "grant":
		return s.grant(e)
	case "refusal":
		if e.others || (s.owner != nil && s.now <= s.goneBy) {
			return s, ""
		}
		return s, "the lock was free, and nobody else can have waited for it"
	case "loss":
		if !s.isOwner(e) {
			return s, ""
		}
		if e.ret < s.mayEnd() {
			return s, "nobody took it away, and its lease was not over"
		}
		s.now, s.owner = max(s.now, s.mayEnd()), nil
		return s, ""
	}
	if !s.isOwner(e) {
		return s, "it did not own the lock then: " + s.ownerText()
	}
	if s.now > s.goneBy {
		return s, "its lease was over long before"
	}
	if e.kind == "release" {
		s.owner = nil
	} else {
		s.leaseEnds = max(s.leaseEnds, s.now+withoutDrift(e.op.lease))
		s.goneBy = max(s.goneBy, e.goneBy)
	}
	return s, ""
}

func (s state) grant(e *event) (state, string) {
	g := e.lease.grant
	if g.fence != 0 && s.fence >= 0 && g.fence <= s.fence {
		return s, fmt.Sprintf("its fence %d is not above the last one, %d", g.fence, s.fence)
	}
	if g.fence != 0 && s.fence >= 0 && e.lease.prev > s.fence {
		return s, fmt.Sprintf("a lower fence, %d, was not granted before it", e.lease.prev)
	}
	if s.owner != nil {
		if e.ret < s.mayEnd() {
			return s, "the lock was held: " + s.ownerText()
		}
		s.now = max(s.now, s.mayEnd())
	}
	// Passed on inside a client, a lock keeps the lease that it has on the server.
	if g.token != s.token {
		shortest := g.lease
		if g.waitMs != 0 {
			shortest = min(shortest, claim)
		}
		s.leaseEnds = s.now + withoutDrift(shortest)
	}
	s.owner, s.token, s.goneBy = e.lease, g.token, e.lease.goneBy
	if g.fence != 0 {
		s.fence = g.fence
	}
	return s, ""
}

func (s state) isOwner(e *event) bool {
	return s.owner != nil && s.owner.owns(e.op.token, e.op.fence)
}

// The earliest time at which the owner can be gone without having released.
func (s state) mayEnd() int64 { return min(s.leaseEnds, s.owner.openFrom) }

func (s state) ownerText() string {
	if s.owner == nil {
		return "nobody did"
	}
	return fmt.Sprintf("fence %d of process %s did, until %d at least", s.owner.grant.fence,
		s.owner.grant.process, s.mayEnd())
}

// ---- from the history to events ----

func eventsOf(h *history, leases []*lease, slack int64) []*event {
	var events []*event
	grants := map[*op]*lease{}
	for _, l := range leases {
		grants[l.grant] = l
		if l.early != nil {
			events = append(events, &event{kind: "loss", lease: l, op: l.grant, call: l.earlyFrom,
				ret: l.early.at})
		}
	}
	for _, o := range h.ops {
		e := &event{op: o, call: o.call, ret: o.ret, lease: grants[o]}
		switch {
		case o.is("acquire", "ok"):
			e.kind = "grant"
		case o.is("acquire", "busy"):
			e.kind, e.others = "refusal", othersMayWait(h, o, slack)
		case o.is("release", "ok"):
			e.kind = "release"
		case o.is("extend", "ok"), o.is("attach", "ok"):
			e.kind, e.goneBy = "extend", o.ret+o.lease+slack
		case o.outcome == "lost" && o.untilAtCall > o.ret:
			e.kind = "loss"
		default:
			continue
		}
		events = append(events, e)
	}
	narrow(events)
	return events
}

// Whoever may stand in the queue, or may have been granted what it does not know of, is a reason to
// be refused.
func othersMayWait(h *history, refused *op, slack int64) bool {
	for _, o := range h.ops {
		if o.call >= refused.ret {
			break
		}
		if o.kind != "acquire" || o == refused || o.outcome == "busy" {
			continue
		}
		end := o.ret
		switch {
		case o.outcome == "ok" && o.waitMs == 0:
			continue
		case o.outcome == "ok" && o.burst > 0:
			end += slack // a shared place may stay for a moment
		case o.outcome == "open" && o.gone != never:
			end = o.gone + o.lease + slack
		case o.outcome != "ok" && o.outcome != "open":
			end += o.lease + slack // what it left is cleaned up within a lease
		}
		if end > refused.call {
			return true
		}
	}
	return false
}

// narrow takes from the times of grants and releases what the order of the fences, which is the
// only legal one, rules out. That changes no verdict, and makes waits of minutes short.
func narrow(events []*event) {
	var grants []*event
	released := map[*lease]*event{}
	for _, e := range events {
		if e.kind == "grant" && e.op.fence != 0 {
			grants = append(grants, e)
		}
	}
	sort.SliceStable(grants, func(i, j int) bool { return grants[i].op.fence < grants[j].op.fence })
	for _, e := range events {
		if e.kind != "release" || e.op.fence == 0 {
			continue
		}
		at := sort.Search(len(grants), func(i int) bool { return grants[i].op.fence >= e.op.fence })
		if at < len(grants) && grants[at].lease.owns(e.op.token, e.op.fence) {
			released[grants[at].lease] = e
		}
	}
	for i := 1; i < len(grants); i++ {
		before, after := grants[i-1], grants[i]
		after.lease.prev = before.op.fence
		after.lease.isPassed = before.op.token == after.op.token
		from := before.call
		if release := released[before.lease]; release != nil {
			from = max(from, release.call)
		}
		if from < after.ret {
			after.call = max(after.call, from)
		}
	}
	for i := len(grants) - 2; i >= 0; i-- {
		before, after := grants[i], grants[i+1]
		if after.ret > before.call {
			before.ret = min(before.ret, after.ret)
		}
		if release := released[before.lease]; release != nil && after.ret > release.call {
			release.ret = min(release.ret, after.ret)
		}
	}
}

// ---- the verdict ----

// Porcupine's memory grows with the square of a history.
const segmentSize = 1000

// split cuts where a grant has just returned and nothing else is under way. The grant begins the
// next part again: after it, nothing that was before matters, but for a lease that was passed on.
func split(events []*event) [][]*event {
	sort.SliceStable(events, func(i, j int) bool { return events[i].call < events[j].call })
	var parts [][]*event
	begin, latest := 0, int64(math.MinInt64)
	for i, e := range events {
		isAlone := e.call > latest && (i+1 == len(events) || events[i+1].call > e.ret)
		isCut := isAlone && e.kind == "grant" && !e.lease.isPassed
		if isCut && i-begin >= segmentSize {
			parts = append(parts, events[begin:i+1])
			begin = i
		}
		latest = max(latest, e.ret)
	}
	return append(parts, events[begin:])
}

func checkService(h *history, leases []*lease, o options) []finding {
	end := time.Now().Add(o.timeout)
	model := porcupine.Model{
		Init: func() interface{} { return state{fence: -1} },
		Step: func(s, input, _ interface{}) (bool, interface{}) {
			after, why := s.(state).apply(input.(*event))
			return why == "", after
		},
	}
	for _, part := range split(eventsOf(h, leases, o.slack)) {
		operations := make([]porcupine.Operation, len(part))
		for i, e := range part {
			operations[i] = porcupine.Operation{ClientId: i, Input: e, Call: e.call, Return: e.ret}
		}
		left := max(time.Until(end), time.Millisecond)
		result, info := porcupine.CheckOperationsVerbose(model, operations, left)
		if result == porcupine.Ok {
			continue
		}
		if result == porcupine.Unknown {
			text := fmt.Sprintf("undecided: %d operations took longer than %s", len(part), o.timeout)
			return []finding{{name: h.name, checker: undecided, text: text}}
		}
		return []finding{explain(h.name, part, info.PartialLinearizations()[0])}
	}
	return nil
}

// explain takes the longest order that was possible, and says why nothing can follow.
func explain(name string, part []*event, orders [][]int) finding {
	s := state{fence: -1}
	isDone := make([]bool, len(part))
	var longest []int
	for _, order := range orders {
		if len(order) > len(longest) {
			longest = order
		}
	}
	f := finding{name: name, checker: "service", text: "no order of what was answered is possible"}
	for i, index := range longest {
		s, _ = s.apply(part[index])
		isDone[index] = true
		if i >= len(longest)-3 {
			f.lines = append(f.lines, "after      "+part[index].text())
		}
	}
	first := never
	for i, e := range part {
		if !isDone[i] {
			first = min(first, e.ret)
		}
	}
	for i, e := range part {
		if !isDone[i] && e.call <= first {
			_, why := s.apply(e)
			f.lines = append(f.lines, "impossible "+e.text(), "           "+why)
		}
	}
	return f
}

func (e *event) text() string {
	if e.kind == "loss" && e.lease != nil {
		return e.lease.early.line
	}
	return e.op.lines[0] + " | " + e.op.lines[len(e.op.lines)-1]
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package main

import (
	"fmt"
	"math"
	"slices"
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
// stay for as long as it likes (lease.goneBy), an acquire lets others be refused (event.others); a
// downgrade lets readers in (lease.readFrom), an upgrade lets them be refused (lease.writeFrom).
type hold struct {
	lease     *lease
	isRead    bool
	fence     int64
	leaseEnds int64 // on the server, at the earliest
	goneBy    int64 // at the latest
}

// A lock is held by one writer, by readers, or by one owner several times. Copies of a state share
// the holds: they are replaced, and never changed in place.
type state struct {
	holds          []hold // in order of lease.index, which makes equal what is the same
	highest, write int64  // fences that were granted, and to writers; 0 is any
	read           int64  // the last fence of readers,
	turn           int    // and how many of them came
	token          string // of the last writer that is gone; its client may pass it on,
	leaseEnds      int64  // with the lease that it had
	now            int64
}

func (s state) isEqual(other state) bool {
	return s.highest == other.highest && s.write == other.write && s.read == other.read &&
		s.turn == other.turn && s.token == other.token && s.leaseEnds == other.leaseEnds &&
		s.now == other.now && slices.Equal(s.holds, other.holds)
}

// apply is one step. A text is why it cannot be.
func (s state) apply(e *event) (state, string) {
	s.now = max(s.now, e.call)
	if s.now > e.ret {
		return s, "it had returned before that could be so"
	}
	at := s.find(e.op)
	switch e.kind {
	case "grant":
		return s.grant(e)
	case "refusal":
		return s, s.refuse(e)
	case "deadlock":
		if e.others {
			return s, ""
		}
		return s, "nobody else can have waited for an upgrade"
	case "loss":
		return s.lose(e, at)
	}
	if at < 0 {
		return s, "it did not own the lock then: " + s.text()
	}
	if s.now > s.holds[at].goneBy {
		return s, "its lease was over long before"
	}
	switch e.kind {
	case "release":
		return s.release(e, at)
	case "upgrade":
		return s.upgrade(e, at)
	case "downgrade":
		return s.downgrade(e, at)
	}
	h := s.holds[at]
	h.leaseEnds = max(h.leaseEnds, s.now+withoutDrift(e.op.lease))
	h.goneBy = max(h.goneBy, e.goneBy)
	return s.with(h), ""
}

func (s state) grant(e *event) (state, string) {
	why := s.misorder(e)
	if why == "" {
		s, why = s.makeRoom(e, -1)
	}
	if why == "" {
		why = s.miscount(e)
	}
	if why != "" {
		return s, why
	}
	g := e.lease.grant
	shortest := g.lease
	if g.waitMs != 0 {
		shortest = min(shortest, claim)
		if g.isQuorum {
			shortest = max(shortest-kept, 0)
		}
	}
	h := hold{e.lease, g.isRead, e.fence, s.now + withoutDrift(shortest), e.lease.goneBy}
	if g.isRead {
		h.leaseEnds = e.call + withoutDrift(shortest) // in whatever order readers come
	} else if g.token == s.token {
		h.leaseEnds = s.leaseEnds // passed on inside a client, it is what it was on the server
	}
	return s.count(e).with(h), ""
}

func (s state) refuse(e *event) string {
	for _, h := range s.holds {
		mayWrite := e.isRead() && h.lease.writeFrom <= e.ret
		isBeside := (h.isRead && e.isRead() && !mayWrite) || (e.group() != "" && h.group() == e.group())
		isOwn := e.op.kind == "upgrade" && h.lease.owns(e.op.token, e.op.fence)
		if s.now <= h.goneBy && !isBeside && !isOwn {
			return ""
		}
	}
	if e.others {
		return ""
	}
	return "nothing was in its way, and nobody else can have waited for it"
}

func (s state) lose(e *event, at int) (state, string) {
	if at < 0 {
		return s, ""
	}
	end := s.holds[at].mayEnd()
	if s.holds[at].lease.grant.isOneOfSeveral() {
		end = s.now // whenever most of its servers have gone, or another of its names
	}
	if e.ret < end {
		return s, "nobody took it away, and its lease was not over"
	}
	s.now = max(s.now, end)
	return s.without(at), ""
}

// release: the last hold of an owner frees the lock, and no other one does.
func (s state) release(e *event, at int) (state, string) {
	group := s.holds[at].group()
	if e.op.outcome == "still_held" {
		for i, h := range s.holds {
			if i != at && group != "" && h.group() == group && s.now <= h.goneBy {
				return s.without(at), ""
			}
		}
		if e.others {
			return s.without(at), ""
		}
		return s, "its owner cannot have had another hold"
	}
	if group != "" {
		var why string
		if s, why = s.makeRoom(e, at); why != "" {
			return s, "it freed the lock, but " + why
		}
		at = 0
	}
	return s.without(at), ""
}

func (s state) upgrade(e *event, at int) (state, string) {
	h := s.holds[at]
	if !h.isRead && (e.fence == h.fence || e.fence == 0) {
		return s, ""
	}
	if !h.isRead && h.lease.readFrom > e.ret {
		return s, "it was a writer already, and keeps its fence"
	}
	why := s.misorder(e)
	if why == "" {
		s, why = s.makeRoom(e, at)
	}
	if why != "" {
		return s, why
	}
	h.isRead, h.fence, h.goneBy = false, e.fence, max(h.goneBy, e.goneBy)
	return s.count(e).with(h), ""
}

func (s state) downgrade(e *event, at int) (state, string) {
	h := s.holds[at]
	if e.fence != 0 && e.fence < s.write {
		return s, fmt.Sprintf("its fence %d is below a writer's, %d", e.fence, s.write)
	}
	h.isRead, h.fence, s.highest = true, max(h.fence, e.fence), max(s.highest, e.fence)
	return s.with(h), ""
}

// ---- parts of a step ----

// misorder: fences rise from writer to writer, and readers are between two of them.
func (s state) misorder(e *event) string {
	switch {
	case e.fence == 0:
	case e.isRead() && e.fence < s.write:
		return fmt.Sprintf("its fence %d is below a writer's, %d", e.fence, s.write)
	case e.turn != 0 && e.turn != s.turnOf(e)+1:
		return "it is not the first of its readers who can have come"
	case !e.isRead() && e.fence <= s.highest && !slices.ContainsFunc(s.holds, e.isBeside):
		return fmt.Sprintf("its fence %d is not above the last one, %d", e.fence, s.highest)
	}
	return ""
}

// isBeside: readers are beside readers, and a further hold of an owner has the fence of the first.
func (e *event) isBeside(h hold) bool {
	return (h.isRead && e.isRead()) ||
		(e.kind == "grant" && e.group() != "" && e.group() == h.group() && e.fence == h.fence)
}

// makeRoom ends all holds that are in the way, but for its own, when they can have ended.
func (s state) makeRoom(e *event, own int) (state, string) {
	before := s.holds
	for i, h := range before {
		if i == own || e.isBeside(h) {
			continue
		}
		end := h.mayEnd()
		if isShared := e.isRead() && h.lease.readFrom < end; isShared {
			end, h.isRead = h.lease.readFrom, true
		}
		if e.ret < end {
			return s, "the lock was held: " + h.text()
		}
		s.now = max(s.now, end)
		if h.isRead && !before[i].isRead {
			s = s.with(h)
		} else {
			s = s.without(s.at(h.lease))
		}
	}
	return s, ""
}

// miscount: what the library counts of an owner's holds is what it can have.
func (s state) miscount(e *event) string {
	certain, possible := int64(1), int64(1)
	for _, h := range s.holds {
		if h.mayEnd() > e.ret {
			certain++
		}
		if s.now <= h.goneBy {
			possible++
		}
	}
	if e.group() == "" || e.op.holds == 0 {
		return ""
	}
	// It counts one when it was handed over: then nobody asked the server.
	isFew := e.op.holds < certain && (e.op.holds > 1 || e.op.waitMs == 0)
	if isFew || (e.op.holds > possible && !e.others) {
		return fmt.Sprintf("it counts %d holds, but its owner has %d to %d", e.op.holds, certain,
			possible)
	}
	return ""
}

func (s state) count(e *event) state {
	s.highest = max(s.highest, e.fence)
	if e.isRead() {
		s.read, s.turn = e.fence, s.turnOf(e)+1
	} else {
		s.write = max(s.write, e.fence)
	}
	return s
}

func (s state) turnOf(e *event) int {
	if e.fence != s.read {
		return 0
	}
	return s.turn
}

func (s state) find(o *op) int {
	return slices.IndexFunc(s.holds, func(h hold) bool { return h.lease.owns(o.token, o.fence) })
}

func (s state) at(l *lease) int {
	return slices.IndexFunc(s.holds, func(h hold) bool { return h.lease == l })
}

// with adds a hold, or replaces it.
func (s state) with(h hold) state {
	at := sort.Search(len(s.holds), func(i int) bool {
		return s.holds[i].lease.index >= h.lease.index
	})
	s.holds = slices.Clone(s.holds)
	if at < len(s.holds) && s.holds[at].lease == h.lease {
		s.holds[at] = h
	} else {
		s.holds = slices.Insert(s.holds, at, h)
	}
	return s
}

func (s state) without(at int) state {
	if h := s.holds[at]; !h.isRead {
		s.token, s.leaseEnds = h.lease.grant.token, h.leaseEnds
	}
	s.holds = slices.Delete(slices.Clone(s.holds), at, at+1)
	return s
}

// The earliest time at which the owner can be gone without having released.
func (h hold) mayEnd() int64 { return min(h.leaseEnds, h.lease.openFrom) }

func (h hold) group() string { return h.lease.grant.group() }

func (h hold) text() string {
	return fmt.Sprintf("fence %d of process %s did, until %d at least", h.fence,
		h.lease.grant.process, h.mayEnd())
}

func (s state) text() string {
	if len(s.holds) == 0 {
		return "nobody did"
	}
	return s.holds[0].text()
}

// ---- the verdict ----

// Porcupine's memory grows with the square of a history.
const segmentSize = 1000

// split cuts where a grant has just returned and nothing else is under way. The grant begins the
// next part again: after it, nothing that was before matters, but for a lease that was passed on,
// for other readers, and for other holds of its owner.
func split(events []*event) [][]*event {
	sort.SliceStable(events, func(i, j int) bool { return events[i].call < events[j].call })
	var parts [][]*event
	begin, latest := 0, int64(math.MinInt64)
	for i, e := range events {
		isAlone := e.call > latest && (i+1 == len(events) || events[i+1].call > e.ret)
		isCut := isAlone && e.kind == "grant" && !e.isRead() && !e.isFurther && !e.isPassed
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
		Init:  func() interface{} { return state{} },
		Equal: func(a, b interface{}) bool { return a.(state).isEqual(b.(state)) },
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
	var s state
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

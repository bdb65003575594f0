// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package main

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// One step of the service, with a definite answer; service.go says what it must be like.
type event struct {
	kind      string // grant, upgrade, downgrade, release, extend, loss, refusal, deadlock
	lease     *lease // nil of a loss that was answered, and of an acquire that was refused
	op        *op
	fence     int64 // of a grant, an upgrade, a downgrade; 0 is any
	call, ret int64
	others    bool  // somebody else may have waited, or held without knowing it
	goneBy    int64 // what was extended is over by then

	isFurther bool // one of the same fence was before it
	isPassed  bool // on inside a client: the grant before it has the same token
	turn      int  // of readers of one fence, from 1 on; 0 is any
}

// Only an acquire is for reading: an upgrade is not beside readers.
func (e *event) isRead() bool  { return e.op.isRead && e.op.kind == "acquire" }
func (e *event) group() string { return e.op.group() }

func eventsOf(h *history, leases []*lease, slack int64) []*event {
	var events []*event
	about := map[*op]*lease{}
	for _, l := range leases {
		about[l.grant] = l
		for _, o := range l.calls {
			if about[o] == nil || l.grant.kind == "acquire" {
				about[o] = l
			}
		}
		if l.early != nil {
			events = append(events, &event{kind: "loss", lease: l, op: l.grant, call: l.earlyFrom,
				ret: l.early.at})
		}
	}
	unsure := map[string][]*op{} // what an owner may have been granted without its knowing
	for _, o := range h.ops {
		if o.kind == "acquire" && o.outcome != "ok" && o.group() != "" {
			unsure[o.group()] = append(unsure[o.group()], o)
		}
	}
	for _, o := range h.ops {
		group := o.group()
		if l := about[o]; l != nil {
			group = l.grant.group()
		}
		if e := eventOf(o, about[o], h.ops, unsure[group], slack); e != nil {
			events = append(events, e)
		}
	}
	narrow(events)
	return events
}

// eventOf is nil for what has no definite answer, or had no effect.
func eventOf(o *op, l *lease, all, unsure []*op, slack int64) *event {
	e := &event{op: o, call: o.call, ret: o.ret, lease: l, fence: o.fence}
	switch {
	case o.is("acquire", "ok"):
		e.kind, e.others = "grant", mayBeUnseen(unsure, o, slack, isWaiter)
	case o.is("acquire", "busy") && o.isOneOfSeveral():
		return nil // several may have split the votes, or another name was busy
	case o.is("acquire", "busy"):
		e.kind, e.others = "refusal", mayBeUnseen(all, o, slack, isWaiter)
	case o.is("upgrade", "busy"):
		e.kind, e.others = "refusal", mayBeUnseen(all, o, slack, isReader)
	case o.is("upgrade", "deadlock"):
		e.kind, e.others = "deadlock", mayBeUnseen(all, o, slack, isUpgrade)
	case o.is("release", "ok"), o.is("release", "still_held"):
		e.kind, e.others = "release", mayBeUnseen(unsure, o, slack, isWaiter)
	case o.is("extend", "ok"), o.is("attach", "ok"):
		e.kind, e.goneBy = "extend", o.ret+o.lease+slack
	case o.is("upgrade", "ok"):
		e.kind, e.fence, e.goneBy = "upgrade", o.newFence, o.ret+max(o.lease, claim)+slack
	case o.is("downgrade", "ok"):
		e.kind, e.fence = "downgrade", o.newFence
	case o.outcome == "lost" && o.untilAtCall > o.ret:
		e.kind, e.lease = "loss", nil
	default:
		return nil
	}
	return e
}

func isWaiter(o *op) bool  { return o.kind == "acquire" || o.kind == "upgrade" }
func isReader(o *op) bool  { return o.kind == "acquire" && o.isRead }
func isUpgrade(o *op) bool { return o.kind == "upgrade" }

// mayBeUnseen: whoever may stand in the queue, or may have been granted what it does not know of,
// is a reason to be refused.
func mayBeUnseen(ops []*op, about *op, slack int64, isOne func(o *op) bool) bool {
	for _, o := range ops {
		if o.call >= about.ret {
			break
		}
		if !isOne(o) || o == about {
			continue
		}
		end := o.ret
		switch {
		case o.outcome == "busy" && !o.isPart, o.outcome == "deadlock", o.outcome == "already_held":
			continue
		case o.outcome == "ok" && o.waitMs == 0:
			continue
		case o.outcome == "ok" && o.burst > 0:
			end += slack // a shared place may stay for a moment
		case o.outcome == "open" && o.gone != never:
			end = o.gone + o.lease + slack
		case o.outcome != "ok" && o.outcome != "open":
			end += o.lease + slack // what it left is cleaned up within a lease
		}
		if end > about.call {
			return true
		}
	}
	return false
}

// ---- narrower times ----

// narrow takes from the times of grants and releases what the order of the fences, which is the
// only legal one, rules out. That changes no verdict, and makes waits of minutes short.
func narrow(events []*event) {
	groups := byFence(events)
	released := map[*lease]*event{}
	for _, e := range events {
		if e.kind == "release" && e.fence != 0 && e.lease != nil && !e.lease.changesMode() {
			released[e.lease] = e
		}
	}
	latest, latestWrite := int64(math.MinInt64), int64(math.MinInt64)
	for _, group := range groups {
		from := latest
		if group[0].isRead() {
			from = latestWrite
		}
		for _, e := range group {
			if from < e.ret {
				e.call = max(e.call, from)
			}
			latest = max(latest, e.call)
			if release := released[e.lease]; release != nil {
				latest = max(latest, release.call)
			}
		}
		if !group[0].isRead() {
			latestWrite = latest
		}
	}
	soonest, soonestWrite := never, never
	for i := len(groups) - 1; i >= 0; i-- {
		until := soonest
		if groups[i][0].isRead() {
			until = soonestWrite
		}
		for _, e := range groups[i] {
			e.endBy(until)
			if release := released[e.lease]; release != nil {
				release.endBy(until)
			}
			soonest = min(soonest, e.ret)
		}
		if !groups[i][0].isRead() {
			soonestWrite = soonest
		}
		takeTurns(groups[i])
	}
}

// takeTurns has readers of one fence come in the order of their returns, if that is the order of
// their calls as well: any other would do no better, and the search need not try them all.
func takeTurns(group []*event) {
	if !group[0].isRead() {
		return
	}
	sort.SliceStable(group, func(i, j int) bool { return group[i].ret < group[j].ret })
	if slices.IsSortedFunc(group, func(a, b *event) int { return cmp.Compare(a.call, b.call) }) {
		for i, e := range group {
			e.turn = i + 1
		}
	}
}

func (e *event) endBy(until int64) {
	if until > e.call {
		e.ret = min(e.ret, until)
	}
}

// byFence finds the grants of each fence, in order of the fences. Readers may have the fence of the
// writer before them. Grants of one fence are readers, or holds of one owner, in any order.
func byFence(events []*event) [][]*event {
	var grants []*event
	for _, e := range events {
		isNew := e.kind == "grant" || (e.kind == "upgrade" && e.fence != e.op.fence)
		if isNew && e.fence != 0 {
			grants = append(grants, e)
		}
	}
	sort.SliceStable(grants, func(i, j int) bool {
		if grants[i].fence != grants[j].fence {
			return grants[i].fence < grants[j].fence
		}
		return !grants[i].isRead() && grants[j].isRead()
	})
	var groups [][]*event
	for i := 0; i < len(grants); {
		first := grants[i]
		end := i
		for end < len(grants) && grants[end].fence == first.fence &&
			grants[end].isRead() == first.isRead() {
			e := grants[end]
			e.isFurther = end > i // as they come in order of their calls
			e.isPassed = i > 0 && grants[i-1].op.token == e.op.token
			end++
		}
		groups = append(groups, grants[i:end])
		i = end
	}
	return groups
}

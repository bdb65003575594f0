// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package main

import (
	"slices"
	"sort"
)

// What a waiter is given at most before it has confirmed a grant (docs/wire.md).
const claim = 3000 * ms

// The votes of a failed round are kept for at most this time (core/quorum/quorum_acquire.cc). So a
// lease of a later round may have votes that are older than its last one.
const kept = 1000 * ms

// What clients take off a lease: clock rates differ, and servers count whole milliseconds.
func withoutDrift(lease int64) int64 { return max(lease-lease/100-2*ms, 0) }

// Something that shows until when its owner believed in a lease.
type evidence struct {
	at, until int64
	isEnd     bool // the owner gave it up here
	line      string
}

// A part of a belief: what it is that its owner believed to have.
type span struct {
	lease      *lease
	isRead     bool
	fence      int64
	begin, end int64
}

// One grant to one caller, and what became of it. An attached lease is one more of the same token.
type lease struct {
	grant  *op
	first  *op     // of an attached lease the acquire, else the grant
	index  int     // in order of the beginnings
	fences []int64 // besides the grant's: of the upgrades and the downgrades
	calls  []*op   // releases, extensions and the like, in order of their calls
	shown  []evidence
	spans  []span

	isPassed bool // on inside a client: the grant before it has the same token

	begin, end int64 // of the belief; nobody believed if end <= begin
	// The server's side. The owner can be gone from openFrom on, without any definite answer that
	// says so. It must be gone by goneBy, if nothing was extended.
	openFrom, goneBy int64
	early            *evidence // the first sign of a loss that no deadline explains
	earlyFrom        int64
	// From then on it may be a reader's, or a writer's, without any definite answer that says so.
	readFrom, writeFrom int64
}

func (l *lease) owns(token string, fence int64) bool {
	return l.grant.token == token && (fence == 0 || l.grant.fence == 0 || l.grant.fence == fence ||
		slices.Contains(l.fences, fence))
}

func (l *lease) changesMode() bool { return slices.ContainsFunc(l.calls, (*op).changesMode) }

// leasesOf finds all grants of a name, in order of the returns, with what concerns each of them.
func leasesOf(h *history, slack int64) []*lease {
	var all []*lease
	byToken := map[string][]*lease{}
	for _, o := range h.ops {
		if o.is("acquire", "ok") || o.is("attach", "ok") {
			l := &lease{grant: o, first: o, begin: o.ret, openFrom: never, readFrom: never, writeFrom: never}
			l.shown = []evidence{{at: o.ret, until: o.until, line: o.lines[1]}}
			if first := byToken[o.token]; first != nil && o.kind == "attach" {
				o.owner, o.isReentrant = first[0].grant.owner, first[0].grant.isReentrant
				o.isRead = o.isRead || first[0].grant.isRead
				l.first = first[0].grant
			}
			all = append(all, l)
			byToken[o.token] = append(byToken[o.token], l)
		}
	}
	for _, o := range h.ops {
		for _, l := range byToken[o.token] {
			if l.owns(o.token, o.fence) && o != l.grant && o.kind != "attach" {
				l.add(o)
			}
		}
	}
	for _, s := range h.looks {
		for _, l := range byToken[s.token] {
			if l.owns(s.token, s.fence) && l.grant.process == s.process {
				l.shown = append(l.shown, evidence{at: s.at, until: s.until, line: s.line})
			}
		}
	}
	for _, o := range h.ops {
		if o.kind == "close" || o.kind == "force" {
			for _, l := range all {
				l.takeAway(o)
			}
		}
	}
	for _, l := range all {
		l.judgeBelief()
		l.judgeModes()
		l.judgeServer(byToken[l.grant.token], slack)
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].begin < all[j].begin })
	for i, l := range all {
		l.index = i
	}
	return all
}

// add takes in a call that is about this lease.
func (l *lease) add(o *op) {
	l.calls = append(l.calls, o)
	if o.kind == "upgrade" {
		o.lease = l.grant.lease
	}
	if o.newFence != 0 {
		l.fences = append(l.fences, o.newFence)
	}
	if o.process != l.grant.process {
		return
	}
	// A detach that was refused, or could not be sent, leaves the lease as it was.
	isEnd := o.kind == "release" || (o.kind == "detach" && o.outcome != "error")
	l.shown = append(l.shown, evidence{o.call, o.untilAtCall, isEnd, o.lines[0]})
	if (o.kind == "extend" || o.changesMode()) && (o.outcome == "ok" || o.outcome == "lost") {
		l.shown = append(l.shown, evidence{at: o.ret, until: o.until, line: o.lines[1]})
	}
}

// takeAway is for what ends leases without their owner: its client is closed, the lock is forced,
// or the server forgot all locks. The owner need not know of the latter two at once. One of several
// servers that forgets is no reason for a quorum to lose anything.
func (l *lease) takeAway(o *op) {
	if o.kind == "close" {
		if o.process != l.grant.process || o.client != l.grant.client || o.call < l.begin {
			return
		}
	} else if l.grant.call > o.ret || o.outcome == "not_held" || (l.grant.isQuorum && o.name == "") {
		return
	}
	l.openFrom = min(l.openFrom, o.call)
	at := o.call
	if o.call < l.begin {
		if o.name != "" && !l.wasLost() {
			return // most likely it was granted by this
		}
		at = l.begin
	}
	l.shown = append(l.shown, evidence{at, never, true, o.lines[0]})
}

// judgeBelief finds the end of the belief: the lease was given up or seen lost, or the deadline
// that was known last has passed.
func (l *lease) judgeBelief() {
	sort.SliceStable(l.shown, func(i, j int) bool { return l.shown[i].at < l.shown[j].at })
	proven, until := l.begin, int64(0)
	for i, e := range l.shown {
		if e.until == 0 {
			l.end = min(e.at, until)
			if until > e.at+2*ms {
				l.early, l.earlyFrom = &l.shown[i], proven+1
				if l.grant.isOneOfSeveral() {
					l.end = proven // it may be lost at any time; who asked was told so
				}
			}
			break
		}
		if e.until != never {
			proven, until = e.at, e.until
		}
		if e.isEnd {
			l.end = min(e.at, until)
			if e.until == never && e.at > until {
				l.end = until
			}
			if lost := l.lostBefore(i); lost != nil {
				l.early, l.earlyFrom, l.end = lost, proven+1, proven
			}
			break
		}
		l.end = until
	}
	// A client that sees its deadline pass sends a release; perhaps before the acquire returned.
	l.openFrom = min(l.openFrom, max(until, l.grant.call))
}

// lostBefore: a part that was taken away may have been lost before, because of another name. It was
// not, if its owner believed in it afterwards. @return what shows that it is over, or nil.
func (l *lease) lostBefore(taken int) *evidence {
	if !l.grant.isPart || l.shown[taken].until != never {
		return nil
	}
	for i := taken + 1; i < len(l.shown); i++ {
		if until := l.shown[i].until; until == 0 {
			return &l.shown[i]
		} else if until != never {
			return nil
		}
	}
	return &l.shown[taken]
}

// judgeModes cuts the belief where its mode changes. A writer begins when the upgrade has returned;
// a reader begins when the downgrade is called, whatever comes of it.
func (l *lease) judgeModes() {
	changes := slices.DeleteFunc(slices.Clone(l.calls), func(o *op) bool {
		return o.kind != "downgrade" && !o.is("upgrade", "ok")
	})
	from := func(o *op) int64 {
		if o.kind == "upgrade" {
			return o.ret
		}
		return o.call
	}
	sort.SliceStable(changes, func(i, j int) bool { return from(changes[i]) < from(changes[j]) })
	s := span{l, l.grant.isRead, l.grant.fence, l.begin, l.end}
	for _, o := range changes {
		if isRead := o.kind == "downgrade"; isRead != s.isRead {
			l.believe(s, from(o))
			s.isRead, s.begin = isRead, max(from(o), l.begin)
			if o.newFence != 0 {
				s.fence = o.newFence
			}
		}
	}
	l.believe(s, l.end)
}

// wasLost: its owner was told so by the server, or saw it before the deadline.
func (l *lease) wasLost() bool {
	return slices.ContainsFunc(l.calls, func(o *op) bool { return o.outcome == "lost" }) ||
		slices.ContainsFunc(l.shown, func(e evidence) bool {
			return e.until == 0 && !e.isEnd && e.at < l.grant.until
		})
}

func (l *lease) believe(s span, end int64) {
	s.end = min(end, l.end)
	if s.begin < s.end {
		l.spans = append(l.spans, s)
	}
}

func isDefinite(o *op) bool {
	switch o.outcome {
	case "ok", "lost", "not_held", "still_held":
		return true
	case "busy", "timeout", "deadlock":
		return o.kind == "upgrade"
	}
	return false
}

func (l *lease) judgeServer(sameToken []*lease, slack int64) {
	longest := l.grant.lease
	l.goneBy = l.grant.ret + l.grant.lease + slack
	if l.grant.waitMs != 0 {
		l.goneBy += min(l.grant.lease, claim)
	}
	isBounded := !l.grant.isRenewed
	for _, o := range l.calls {
		longest = max(longest, o.lease)
		if o.kind == "upgrade" {
			longest = max(longest, claim)
		}
		// It may have been granted for a moment, and then lasts for a claim at least.
		if o.is("upgrade", "timeout") && o.call <= l.goneBy {
			l.goneBy = max(l.goneBy, o.ret+claim+slack)
		}
		// Some of its servers, or names, may have been freed by it, and one was lost before.
		isPartial := l.grant.isOneOfSeveral() && o.is("release", "lost")
		if isDefinite(o) && !isPartial {
			continue
		}
		// It may come into effect at any time, or never.
		switch o.kind {
		case "release":
			l.openFrom = min(l.openFrom, o.call)
		case "extend":
			isBounded = false
		case "upgrade":
			isBounded = false
			l.writeFrom = min(l.writeFrom, o.call)
		case "downgrade":
			l.readFrom = min(l.readFrom, o.call)
		}
	}
	if !isBounded {
		l.goneBy = never
	}
	// A process that died renewed until then at the latest.
	if l.grant.gone != never {
		l.goneBy = min(l.goneBy, l.grant.gone+longest+slack)
	}
	// Passed on or attached: it may be renewed on behalf of others.
	if len(sameToken) > 1 {
		l.goneBy = never
	}
}

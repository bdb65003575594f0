// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package main

import (
	"fmt"
	"slices"
	"sort"
)

// checkBelief: no two believe at once, but for readers, and for holds of one owner; and the fence
// rises in the order of the beliefs.
func checkBelief(h *history, leases []*lease) []finding {
	spans := spansOf(leases)
	found := append(checkFences(h, spans), checkFreed(h, spans)...)
	var active []*span
	for _, s := range spans {
		still := active[:0]
		for _, before := range active {
			if before.end <= s.begin {
				continue
			}
			still = append(still, before)
			if !before.isBeside(s) {
				text := fmt.Sprintf("two believe at once, for %d us", (min(before.end, s.end)-s.begin)/1000)
				found = append(found, finding{h.name, "belief", text,
					append(before.text(), s.text()...)})
			}
		}
		active = append(still, s)
	}
	return found
}

// spansOf has them in order of their beginnings.
func spansOf(leases []*lease) []*span {
	var spans []*span
	for _, l := range leases {
		for i := range l.spans {
			spans = append(spans, &l.spans[i])
		}
	}
	sort.SliceStable(spans, func(i, j int) bool { return spans[i].begin < spans[j].begin })
	return spans
}

func (s *span) isBeside(other *span) bool {
	grant := other.lease.grant
	areReaders := s.isRead && other.isRead && grant.token != s.lease.grant.token
	return s.lease == other.lease || areReaders ||
		(grant.group() != "" && s.lease.grant.group() == grant.group())
}

// checkFences: a writer's is above all that were before. A reader's is not below any writer's; it
// may be that of other readers. Further holds of an owner have the fence of the first.
func checkFences(h *history, spans []*span) []finding {
	var found []finding
	var highest, writer *span
	for _, s := range spans {
		if s.fence == 0 {
			continue
		}
		last, text := highest, "the fence does not rise"
		isWrong := last != nil && s.fence <= last.fence && !s.isReentryOf(last)
		if s.isRead {
			last, text = writer, "a reader's fence is below a writer's"
			isWrong = last != nil && s.fence < last.fence
		}
		if isWrong {
			found = append(found, finding{h.name, "fence", text, append(last.text(), s.text()...)})
		}
		if highest == nil || s.fence > highest.fence {
			highest = s
		}
		if !s.isRead && (writer == nil || s.fence > writer.fence) {
			writer = s
		}
	}
	return found
}

// isReentryOf is also for a writer whose downgrade may not have happened, and for a lease that was
// attached: an upgrade before the detach is counted as its own.
func (s *span) isReentryOf(first *span) bool {
	grant, group := s.lease.grant, s.lease.grant.group()
	isSame := s.lease == first.lease && s.lease.readFrom != never
	isHandedOver := grant.kind == "attach" && grant.token == first.lease.grant.token
	return s.fence == first.fence &&
		(isSame || isHandedOver || (group != "" && group == first.lease.grant.group()))
}

// checkFreed: no release frees a lock while its owner believes in another hold.
func checkFreed(h *history, spans []*span) []finding {
	var found []finding
	byGroup := map[string][]*span{}
	for _, s := range spans {
		if group := s.lease.grant.group(); group != "" {
			byGroup[group] = append(byGroup[group], s)
		}
	}
	for _, s := range spans {
		for _, o := range s.lease.calls {
			if !o.is("release", "ok") {
				continue
			}
			for _, other := range byGroup[s.lease.grant.group()] {
				if !other.lease.owns(o.token, o.fence) && other.begin <= o.call && other.end > o.ret {
					found = append(found, finding{h.name, "belief", "freed while its owner had another hold",
						append(append([]string{}, o.lines...), other.text()...)})
				}
			}
		}
	}
	return found
}

// text is the grant, the last that was heard of the lease while it was believed, and the belief.
func (s *span) text() []string {
	l := s.lease
	lines := append([]string{}, l.grant.lines...)
	for i := len(l.shown) - 1; i > 0; i-- {
		if l.shown[i].at <= s.end {
			lines = append(lines, l.shown[i].line)
			break
		}
	}
	mode := "write"
	if s.isRead {
		mode = "read"
	}
	return append(lines, fmt.Sprintf("  believed from %d to %d: %s", s.begin, s.end, mode))
}

// checkOrder: who was seen in the queue is not overtaken by a call that was made later, but for the
// passing-on inside a client (docs/guarantees.md): max_local_handoffs times for the present holder,
// and once more for each place in front.
func checkOrder(h *history) []finding {
	type place struct {
		at    int64
		front int64
		line  string
	}
	seen := map[string]place{}
	last := map[string]int64{} // when it was still waiting
	for _, s := range h.queues {
		for i, token := range s.tokens {
			last[token] = s.at
			if _, isSeen := seen[token]; !isSeen {
				seen[token] = place{s.at, int64(i), s.line}
			}
		}
	}
	var grants []*op
	burst := int64(0)
	for _, o := range h.ops {
		if o.kind == "acquire" && o.waitMs != 0 {
			burst = max(burst, o.burst)
		}
		if o.is("acquire", "ok") && o.fence != 0 {
			grants = append(grants, o)
		}
	}
	sort.SliceStable(grants, func(i, j int) bool { return grants[i].fence < grants[j].fence })
	var found []finding
	for i, waiter := range grants {
		where, isSeen := seen[waiter.token]
		// In a place that is shared by callers, another one may be served first.
		if !isSeen || waiter.burst > 0 {
			continue
		}
		allowed := int64(0)
		if burst > 0 {
			allowed = burst + (burst+1)*where.front
		}
		var overtakers []string
		for _, other := range grants[:i] {
			if other.call > where.at && other.passed(last[waiter.token]) && !mayPass(other, grants[:i]) {
				overtakers = append(overtakers, other.lines...)
			}
		}
		if count := int64(len(overtakers) / 2); count > allowed {
			text := fmt.Sprintf("a waiter was overtaken %d times, %d are allowed", count, allowed)
			lines := append([]string{where.line}, waiter.lines...)
			found = append(found, finding{h.name, "order", text, append(lines, overtakers[:2]...)})
		}
	}
	return found
}

// passed: a waiter that was seen at that time had not been granted. The fence of another lock says
// so as well; a waiter for permits may have the fence of a repetition.
func (o *op) passed(seen int64) bool { return o.limit == 0 || o.ret < seen }

// mayPass is for who holds the lock already: a further hold of a reentrant lock, or of a reader
// that has said who it is, does not wait.
func mayPass(o *op, grants []*op) bool {
	return o.owner != "" && slices.ContainsFunc(grants, func(first *op) bool {
		return first.owner == o.owner && first.fence == o.fence && first.call < o.call
	})
}

type period struct{ from, to int64 }

// idleTimes: when nobody can have had the lock. Whoever waits for several names may have this one,
// and wait for another.
func idleTimes(h *history, leases []*lease, calm int64) []period {
	var taken, idle []period
	for _, l := range leases {
		taken = append(taken, period{l.begin, l.end})
	}
	for _, o := range h.ops {
		if o.isPart && o.kind == "acquire" {
			taken = append(taken, period{o.call, min(o.ret, o.gone, h.end)})
		}
	}
	sort.SliceStable(taken, func(i, j int) bool { return taken[i].from < taken[j].from })
	from := calm
	for _, t := range append(taken, period{h.end, h.end + 1}) {
		if t.to <= t.from {
			continue
		}
		if t.from > from {
			idle = append(idle, period{from, t.from})
		}
		from = max(from, t.to)
	}
	return idle
}

// checkLiveness: from `calm` on, somebody believes within `serve` while anybody waits.
func checkLiveness(h *history, leases []*lease, calm, serve int64) []finding {
	idle := idleTimes(h, leases, calm)
	for _, o := range h.ops {
		if o.kind != "acquire" || o.waitMs == 0 {
			continue
		}
		end := min(o.ret, o.gone, h.end)
		at := sort.Search(len(idle), func(i int) bool { return idle[i].to > o.call })
		for ; at < len(idle) && idle[at].from < end; at++ {
			long := min(end, idle[at].to) - max(o.call, idle[at].from)
			if long > serve {
				text := fmt.Sprintf("nobody was served for %d ms while somebody waited; at most %d ms",
					long/ms, serve/ms)
				return []finding{{h.name, "liveness", text, o.lines}}
			}
		}
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package main

import (
	"fmt"
	"sort"
)

// checkBelief: no two owners believe at once, and the fence rises in the order of the beliefs.
// The leases come in order of their beginnings.
func checkBelief(h *history, leases []*lease) []finding {
	var found []finding
	var active []*lease
	var last *lease
	for _, l := range leases {
		if l.end <= l.begin {
			continue
		}
		still := active[:0]
		for _, before := range active {
			if before.end <= l.begin {
				continue
			}
			still = append(still, before)
			if !before.owns(l.grant.token, l.grant.fence) {
				text := fmt.Sprintf("two believe at once, for %d us", (min(before.end, l.end)-l.begin)/1000)
				found = append(found, finding{h.name, "belief", text,
					append(before.text(), l.text()...)})
			}
		}
		active = append(still, l)
		if l.grant.fence == 0 {
			continue
		}
		if last != nil && l.grant.fence <= last.grant.fence {
			found = append(found, finding{h.name, "fence", "the fence does not rise",
				append(last.text(), l.text()...)})
		}
		last = l
	}
	return found
}

// text is the grant, the last that was heard of the lease while it was believed, and the belief.
func (l *lease) text() []string {
	lines := append([]string{}, l.grant.lines...)
	for i := len(l.shown) - 1; i > 0; i-- {
		if l.shown[i].at <= l.end {
			lines = append(lines, l.shown[i].line)
			break
		}
	}
	return append(lines, fmt.Sprintf("  believed from %d to %d", l.begin, l.end))
}

// checkOrder: who was seen in the queue is not overtaken by a call that was made later, but for the
// passing-on inside a client (docs/guarantees.md): local_burst times for the present holder, and
// once more for each place in front.
func checkOrder(h *history) []finding {
	type place struct {
		at    int64
		front int64
		line  string
	}
	seen := map[string]place{}
	for _, s := range h.queues {
		for i, token := range s.tokens {
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
			if other.call > where.at {
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

// checkLiveness: from `calm` on, somebody believes within `serve` while anybody waits.
func checkLiveness(h *history, leases []*lease, calm, serve int64) []finding {
	type span struct{ from, to int64 }
	var idle []span
	from := calm
	for _, l := range leases {
		if l.end <= l.begin {
			continue
		}
		if l.begin > from {
			idle = append(idle, span{from, l.begin})
		}
		from = max(from, l.end)
	}
	if from < h.end {
		idle = append(idle, span{from, h.end})
	}
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

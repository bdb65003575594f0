// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package main

import (
	"cmp"
	"fmt"
	"slices"
)

// A semaphore is a name whose acquires say a limit.
func isSemaphore(h *history) bool {
	return slices.ContainsFunc(h.ops, func(o *op) bool { return o.limit > 0 })
}

// checkPermits: at no moment are more permits certainly out than the limit allows. A lease has them
// as long as it is believed; their number only rises where a belief begins.
func checkPermits(h *history, leases []*lease) []finding {
	found := checkGrantOrder(h)
	var active []*span
	for _, s := range spansOf(leases) {
		hasEnded := func(before *span) bool { return before.end <= s.begin }
		active = append(slices.DeleteFunc(active, hasEnded), s)
		out, most := int64(0), limitOf(active)
		for _, holder := range active {
			out += holder.lease.first.permits
		}
		if out > most {
			f := finding{name: h.name, checker: "permits",
				text: fmt.Sprintf("%d permits are out at %d, the limit is %d", out, s.begin, most)}
			for _, holder := range active {
				f.lines = append(f.lines, holder.text()...)
			}
			found = append(found, f)
		}
	}
	return found
}

// limitOf: each caller names a limit of its own, which counts for its grant and for no other. So
// the lease that was granted last decides: of those that may have been the last, the one with the
// largest limit.
func limitOf(active []*span) int64 {
	latest := int64(0)
	for _, s := range active {
		latest = max(latest, s.lease.first.call)
	}
	most := int64(0)
	for _, s := range active {
		if s.lease.first.ret >= latest {
			most = max(most, s.lease.first.limit)
		}
	}
	return most
}

// checkGrantOrder: a fence is above all those that were returned before its acquire was called.
func checkGrantOrder(h *history) []finding {
	grants := slices.DeleteFunc(slices.Clone(h.ops), func(o *op) bool {
		return !o.is("acquire", "ok") || o.fence == 0
	})
	returned := slices.Clone(grants)
	slices.SortStableFunc(returned, func(a, b *op) int { return cmp.Compare(a.ret, b.ret) })
	var found []finding
	var highest *op
	for _, o := range grants {
		for len(returned) > 0 && returned[0].ret < o.call {
			if highest == nil || returned[0].fence > highest.fence {
				highest = returned[0]
			}
			returned = returned[1:]
		}
		if highest != nil && o.fence <= highest.fence {
			found = append(found, finding{h.name, "fence", "the fence does not rise",
				append(slices.Clone(highest.lines), o.lines...)})
		}
	}
	return found
}

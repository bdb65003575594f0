// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package main

import (
	"context"

	"redlatch.io/redlatch"
)

// Recalls, which a Redlock does not have.

type asking func(ctx context.Context, name, reason string) (int64, error)

// asked asks the holders of a lock, or the leader of an election.
func asked(way func() asking) func(values) answer {
	return func(v values) answer {
		if client == nil {
			return answer{status: redlatch.ErrUnsupported}
		}
		heard, err := way()(context.Background(), cut(v["name"]), v["reason"])
		done := answered(err)
		if err == nil {
			done.add("heard", heard)
		}
		return done
	}
}

// doRecalled waits for a channel, which is closed at most once.
func doRecalled(l *lock, v values) answer {
	if client == nil {
		return answer{status: redlatch.ErrUnsupported}
	}
	ctx, cancel := v.context()
	defer cancel()
	if v.isTry() {
		cancel()
	}
	lease := l.lease.Load()
	recalled := unrecalled(lease.Recalled())
	select {
	case <-recalled:
	case <-ctx.Done():
		select {
		case <-recalled:
		default:
			return answer{status: redlatch.ErrTimeout}
		}
	}
	done := answer{}
	done.add("count", lease.RecallCount())
	done.add("told", 1)
	done.add("reason", lease.RecallReason())
	return done
}

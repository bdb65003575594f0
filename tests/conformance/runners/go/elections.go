// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package main

import (
	"context"
	"strings"

	"redlatch.io/redlatch"
)

// Elections, which a Redlock does not have.

// candidate has the options of l, and the id.
func (l *lock) candidate(v values) *lock {
	made := &lock{kind: l.kind, name: l.name, owner: l.owner, permits: l.permits, limit: l.limit,
		names: l.names}
	made.options = append(made.options, l.options...)
	if defect != "forget_id" {
		made.options = append(made.options, redlatch.CandidateID(v["id"]))
	}
	return made
}

// campaign is Campaign where it can be; a try, and other locks, have the option only.
func (l *lock) campaign(ctx context.Context, v values) (*redlatch.Lease, error) {
	made := l.candidate(v)
	isPlain := l.kind == "mutex" && client != nil && defect != "forget_id"
	switch {
	case isPlain && !v.isTry():
		return unheard(ctx, func(ctx context.Context) (*redlatch.Lease, error) {
			return client.Campaign(ctx, cut(l.name), made.options...)
		})
	case v["mode"] == "read":
		return made.take(ctx, "acquire_read", v)
	}
	return made.take(ctx, "acquire", v)
}

func doCampaign(l *lock, v values) answer {
	ctx, cancel := v.context()
	defer cancel()
	return l.granted(l.campaign(ctx, v))
}

func doStartCampaign(l *lock, v values) answer {
	return l.start(v, func(ctx context.Context) (*redlatch.Lease, error) {
		return l.campaign(ctx, v)
	})
}

// shown is the zero Leader if none leads.
func shown(leader redlatch.Leader, err error) answer {
	done := answered(err)
	if err == nil {
		done.add("id", leader.ID)
		done.add("term", leader.Term)
	}
	return done
}

func doLeader(v values) answer {
	if client == nil {
		return answer{status: redlatch.ErrUnsupported}
	}
	leader, _, err := client.Leader(context.Background(), cut(v["name"]))
	return shown(leader, err)
}

func doParticipants(v values) answer {
	if client == nil {
		return answer{status: redlatch.ErrUnsupported}
	}
	ids, err := client.Participants(context.Background(), cut(v["name"]))
	done := answered(err)
	if err == nil {
		done.add("ids", strings.Join(ids, ","))
	}
	return done
}

func doObserve(l *lock, v values) answer {
	if client == nil {
		return answer{status: redlatch.ErrUnsupported}
	}
	if l.leaders == nil {
		l.leaders = client.Observe(context.Background(), cut(l.name))
	}
	ctx, cancel := v.context()
	defer cancel()
	select {
	case leader, isOpen := <-l.leaders:
		if !isOpen {
			return doLeader(values{"name": l.name}) // It returns why there will be no more.
		}
		return shown(leader, nil)
	case <-ctx.Done():
		return answer{status: redlatch.ErrTimeout}
	}
}

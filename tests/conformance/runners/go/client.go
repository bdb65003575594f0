// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package main

import (
	"context"
	"fmt"
	"math"
	"sort"
	"strings"
	"time"

	"redlatch.io/redlatch"
)

// Of one server, client is the same as service; a quorum has no more than a service does.
var (
	client  *redlatch.Client
	service interface {
		redlatch.Locks
		Connect(ctx context.Context) error
		Check(ctx context.Context) ([]redlatch.Finding, error)
		Close() error
	}
)

var ofClient = map[string]func(values) answer{
	"open":              doOpen,
	"lock":              doLock,
	"connect":           doConnect,
	"check":             doCheckServers,
	"shutdown":          doShutdown,
	"inspect":           doInspect,
	"force_release":     doForceRelease,
	"force_release_any": doForceReleaseAny,
	"recall":            asked(func() asking { return client.Recall }),
	"resign":            asked(func() asking { return client.Resign }),
	"once_forget":       doOnceForget,
	"leader":            doLeader,
	"participants":      doParticipants,
	"list":              doList,
	"statuses":          doStatuses,
}

func doOpen(v values) answer {
	var options []redlatch.ClientOption
	for key, value := range v {
		if key != "url" && key != "urls" {
			options = append(options, redlatch.WithOption(key, value))
		}
	}
	var err error
	if urls, isQuorum := v["urls"]; isQuorum {
		service, err = redlatch.OpenRedlock(oneNode(strings.Fields(urls)), options...)
	} else {
		client, err = redlatch.Open(v["url"], options...)
		service = client
	}
	return answered(err)
}

func doConnect(v values) answer {
	ctx, cancel := v.context()
	defer cancel()
	if v.number("wait_ms") == -1 {
		// Without a deadline it tries once.
		ctx, cancel = context.WithTimeout(ctx, math.MaxInt64)
		defer cancel()
	}
	return answered(service.Connect(ctx))
}

func doCheckServers(v values) answer {
	ctx, cancel := v.context()
	defer cancel()
	findings, err := service.Check(ctx)
	done := answered(err)
	for _, finding := range findings {
		done.add(strings.ReplaceAll(finding.ID, "-", "_"), finding.Level)
	}
	return done
}

func doShutdown(values) answer {
	if service == nil {
		return answer{}
	}
	return answered(service.Close())
}

func doInspect(v values) answer {
	info, err := client.Inspect(context.Background(), cut(v["name"]))
	if err != nil {
		return answered(err)
	}
	// What is not there is 0 or "", as in C.
	var holder redlatch.Holder
	var first redlatch.Waiter
	if len(info.Holders) > 0 {
		holder = info.Holders[0]
	}
	if len(info.Waiters) > 0 {
		first = info.Waiters[0]
	}
	done := answer{}
	for _, field := range []struct {
		name  string
		value any
	}{
		{"rows", 1}, {"holder_rows", len(info.Holders)}, {"first_rows", len(info.Waiters)},
		{"state", int(info.State)}, {"remaining_ms", ms(info.Remaining)}, {"fence", info.Fence},
		{"waiting", info.Waiting}, {"server_ms", unixMs(info.ServerTime)}, {"type", info.Type},
		{"name", info.Name}, {"holding", info.Holding}, {"owner", info.Owner},
		{"holder_mode", holder.Mode}, {"holder_remaining_ms", ms(holder.Remaining)},
		{"holder_since_ms", unixMs(holder.Since)}, {"holder_token", holder.Token},
		{"holder_who", holder.Who}, {"holder_label", holder.Label}, {"holder_permits", holder.Permits},
		{"holder_candidate", holder.Candidate}, {"first_candidate", first.Candidate},
		{"used", info.Used}, {"limit", info.Limit}, {"cap", info.Cap}, {"first_mode", first.Mode},
		{"first_since_ms", unixMs(first.Since)}, {"first_token", first.Token}, {"first_who", first.Who},
	} {
		done.add(field.name, field.value)
	}
	addMarks(&done, info.Marks)
	return done
}

func addMarks(done *answer, marks []redlatch.Mark) {
	done.add("mark_rows", len(marks))
	if len(marks) == 0 {
		return
	}
	isDone := 0
	if marks[0].IsDone() {
		isDone = 1
	}
	done.add("mark_done", isDone)
	done.add("mark_tries", marks[0].Tries)
}

func ms(left time.Duration) int64 {
	if left == redlatch.Forever {
		return -1
	}
	return left.Milliseconds()
}

func unixMs(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

func doForceRelease(v values) answer {
	return answered(client.ForceRelease(context.Background(), cut(v["name"]), v["token"]))
}

func doForceReleaseAny(v values) answer {
	return answered(client.ForceReleaseAny(context.Background(), cut(v["name"])))
}

func doList(v values) answer {
	var names []string
	list := client.List(context.Background(), v["pattern"])
	for list.Next() {
		names = append(names, list.Info().Name)
	}
	done := answered(list.Err())
	sort.Strings(names)
	done.add("rows", len(names))
	names = append(names, "") // For a list of none.
	done.add("first", names[0])
	done.add("last", names[max(len(names)-2, 0)])
	return done
}

// doStatuses finds those that have a name.
func doStatuses(values) answer {
	done := answer{}
	for status := redlatch.Status(-100); status <= 100; status++ {
		if strings.HasPrefix(status.String(), "UNKNOWN") {
			continue
		}
		traits := 0
		if status.MaybeApplied() {
			traits |= 1
		}
		if status.Retryable() {
			traits |= 2
		}
		done.add("RL_"+mistaken(status).String(), fmt.Sprintf("%d/%d", status, traits))
	}
	return done
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"context"
	"runtime"
	"time"

	"redlatch.io/redlatch/internal/rlc"
)

// Leader is the leader of an election, as the server has it. The zero Leader means no leader.
type Leader struct {
	ID    string    // of the candidate; "": no leader
	Term  int64     // number of the term, which is the fence of the leader
	Since time.Time // when the term began, by the server's clock; zero if not known
}

// IsNone reports whether the election has no leader.
func (l Leader) IsNone() bool { return l.ID == "" }

// Leader returns the leader of the election name; isLed is false, and the Leader zero, without a
// leader. A holder that acquired the lock without an id is no leader. It changes nothing. Errors:
// those of Inspect.
func (c *Client) Leader(ctx context.Context, name string) (leader Leader, isLed bool, err error) {
	info, err := c.look(ctx, "leader", name, rlc.Leader_start)
	if err != nil {
		return Leader{}, false, err
	}
	leader = info.leader()
	return leader, !leader.IsNone(), nil
}

// Participants returns the ids of the candidates of the election name: first that of the leader,
// then those that wait, in the order of the queue; at most as many as Inspect lists. It changes
// nothing. Errors: those of Inspect.
func (c *Client) Participants(ctx context.Context, name string) ([]string, error) {
	info, err := c.look(ctx, "participants", name, rlc.Leader_start)
	if err != nil {
		return nil, err
	}
	ids := []string{}
	if leader := info.leader(); !leader.IsNone() {
		ids = append(ids, leader.ID)
	}
	for _, waiter := range info.Waiters {
		if waiter.Candidate != "" {
			ids = append(ids, waiter.Candidate)
		}
	}
	return ids, nil
}

func (i *Info) leader() Leader {
	if len(i.Holders) == 0 || i.Holders[0].Candidate == "" {
		return Leader{}
	}
	return Leader{ID: i.Holders[0].Candidate, Term: i.Fence, Since: i.Holders[0].Since}
}

// Observe sends the present leader of the election name, and then each change; the zero Leader
// means no leader. Terms never fall. The channel has the newest state only: a slow reader misses
// earlier ones, and delays no other. The server reports changes where it can track keys; else
// Observe asks each second. It waits for the end of an outage.
//
// The channel is closed when ctx ends, when the client is closed, or after an error that cannot
// pass, such as ErrInvalid or ErrDenied; the log has the error, and Leader returns it. Cancel ctx
// when you read no more: a goroutine, and the client, stay until then.
func (c *Client) Observe(ctx context.Context, name string) <-chan Leader {
	leaders := make(chan Leader, 1)
	go func() {
		defer runtime.KeepAlive(c)
		defer close(leaders)
		c.observe(ctx, name, leaders)
	}()
	return leaders
}

const observeOp = "observe"

// observe returns when there will be no more leaders to send.
func (c *Client) observe(ctx context.Context, name string, leaders chan Leader) {
	var delays backOff
	position := int64(-1)
	for {
		leader, next, err := c.nextLeader(ctx, name, position)
		switch status := statusOf(err); {
		case err == nil:
			position, delays = next, backOff{}
			offer(leaders, leader)
		case ctx.Err() != nil || status == ErrClosed:
			return
		case status.Retryable():
			c.common.pause(ctx, delays.after(0))
		default:
			c.common.warn(err.Error())
			return
		}
	}
}

// nextLeader waits for another state than that of the position seen, and returns its position.
func (c *Client) nextLeader(ctx context.Context, name string, seen int64) (leader Leader,
	position int64, err error) {
	const noLimit = -1
	start := func(handle rlc.Client, name string) rlc.Request {
		return rlc.Leader_watch_start(handle, name, seen, noLimit)
	}
	err = c.read(ctx, observeOp, name, start, func(handle rlc.Info) {
		position = row{handle, rlc.RL_PART_LOCK, 0}.number(rlc.RL_FIELD_POSITION)
		leader = readInfo(handle).leader()
	})
	return leader, position, err
}

// offer replaces a leader that was not read yet. Nothing else sends, so that there is room then.
func offer(leaders chan Leader, leader Leader) {
	select {
	case <-leaders:
	default:
	}
	leaders <- leader
}

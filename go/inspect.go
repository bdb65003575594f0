// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"context"
	"runtime"
	"strconv"
	"time"

	"redlatch.io/redlatch/internal/rlc"
)

// LockState is the state of a lock, according to its key.
type LockState int

const (
	// LockFree means that the lock has no holder.
	LockFree LockState = rlc.RL_STATE_FREE
	// LockHeld means that a redlatch client holds it.
	LockHeld LockState = rlc.RL_STATE_HELD
	// LockForeign means that another lock library holds it.
	LockForeign LockState = rlc.RL_STATE_FOREIGN
	// NoLock means that the key has another type, which Info.Type names.
	NoLock LockState = rlc.RL_STATE_NO_LOCK
)

// Forever is the Remaining of a key without expiry.
const Forever time.Duration = -1

// Inspect returns a snapshot of the lock name, as the server has it. It changes nothing.
func (c *Client) Inspect(ctx context.Context, name string) (*Info, error) {
	return c.look(ctx, "inspect", name, rlc.Inspect_start)
}

// look reads what start asks of the lock name.
func (c *Client) look(ctx context.Context, op, name string,
	start func(rlc.Client, string) rlc.Request) (*Info, error) {
	var info *Info
	err := c.read(ctx, op, name, start, func(handle rlc.Info) { info = readInfo(handle) })
	return info, err
}

// read passes the answer of start to take, which does not keep it.
func (c *Client) read(ctx context.Context, op, name string,
	start func(rlc.Client, string) rlc.Request, take func(rlc.Info)) error {
	defer runtime.KeepAlive(c)
	request, err := c.common.ask(ctx, op, name, func() rlc.Request {
		return start(c.handle, name)
	})
	if err != nil {
		return err
	}
	defer c.common.free(request)
	handle := rlc.Request_take_info(request)
	if handle == 0 {
		return &Error{Op: op, Name: name, Status: ErrNoMemory}
	}
	defer rlc.Info_free(handle)
	take(handle)
	return nil
}

// row is one row of one part of an rl_info.
type row struct {
	info        rlc.Info
	part, index int
}

func (r row) number(field int) int64 { return rlc.Info_number(r.info, r.part, r.index, field) }

func (r row) text(field int) string {
	return text(func(buffer []byte) int64 {
		return rlc.Info_text(r.info, r.part, r.index, field, buffer)
	})
}

func (r row) time(field int) time.Time {
	if unixMs := r.number(field); unixMs != 0 {
		return time.UnixMilli(unixMs)
	}
	return time.Time{}
}

func (r row) remaining(field int) time.Duration {
	if left := r.number(field); left >= 0 {
		return ms(left)
	}
	return Forever
}

// clock is a difference, and whether it is known.
func (r row) clock(field int) (time.Duration, bool) {
	if rlc.Info_has(r.info, r.part, r.index, field) == 0 {
		return 0, false
	}
	return ms(r.number(field)), true
}

func rowsOf(handle rlc.Info, part int) []row {
	rows := make([]row, rlc.Info_count(handle, part))
	for i := range rows {
		rows[i] = row{handle, part, i}
	}
	return rows
}

func readInfo(handle rlc.Info) *Info {
	info := row{handle, rlc.RL_PART_LOCK, 0}.asInfo()
	for _, one := range rowsOf(handle, rlc.RL_PART_HOLDER) {
		info.Holders = append(info.Holders, one.asHolder())
	}
	for _, one := range rowsOf(handle, rlc.RL_PART_WAITER) {
		info.Waiters = append(info.Waiters, one.asWaiter())
	}
	for _, one := range rowsOf(handle, rlc.RL_PART_MARK) {
		info.Marks = append(info.Marks, one.asMark())
	}
	return &info
}

// ForceRelease removes the holder with this token, or foreign value, and the next waiter gets the
// lock. For operators. The fence rises; the holder finds out at its next renewal or release.
// Errors:
//
//   - ErrNotHeld: that token does not hold the lock.
//   - ErrInvalid: the token is empty.
func (c *Client) ForceRelease(ctx context.Context, name, token string) error {
	return c.change(ctx, "force-release", name, func() rlc.Request {
		return rlc.Force_release_start(c.handle, name, token)
	})
}

// ForceReleaseAny is ForceRelease of all holders. The error is ErrNotHeld if the lock is free.
func (c *Client) ForceReleaseAny(ctx context.Context, name string) error {
	return c.change(ctx, "force-release", name, func() rlc.Request {
		return rlc.Force_release_any_start(c.handle, name)
	})
}

// change waits for a request that changes something, if ctx has not ended before.
func (c *Client) change(ctx context.Context, op, name string, start func() rlc.Request) error {
	defer runtime.KeepAlive(c)
	if ctx.Err() != nil {
		return endedError(ctx, op, name, ErrCancelled)
	}
	request, err := c.common.ask(ctx, op, name, start)
	if err != nil {
		return sent(err)
	}
	c.common.free(request)
	return nil
}

// List iterates over the locks of a server. One goroutine at a time.
//
//	list := client.List(ctx, "report-*")
//	for list.Next() {
//		fmt.Println(list.Info().Name)
//	}
//	if err := list.Err(); err != nil { .. }
type List struct {
	ctx    context.Context
	client *Client
	handle rlc.List
	info   *Info
	err    error
}

// List iterates over the locks in FormatString that redlatch clients hold, and whose names match
// pattern: * ? [a-z] and \ before one of these; "" is all. A lock that is held all the time is
// found; a lock that is acquired or released meanwhile may be.
func (c *Client) List(ctx context.Context, pattern string) *List {
	defer runtime.KeepAlive(c)
	call := newCall("list", "")
	defer call.free()
	list := &List{ctx: ctx, client: c, handle: rlc.List_open(c.handle, pattern, call.handle)}
	if list.handle == 0 {
		list.err = call.failure()
		return list
	}
	runtime.SetFinalizer(list, func(l *List) { rlc.List_free(l.handle) })
	return list
}

// Next asks the server for the next lock. It returns false at the end, and after an error, which
// Err returns.
func (l *List) Next() bool {
	if l.err != nil {
		return false
	}
	defer runtime.KeepAlive(l)
	request, err := l.client.common.ask(l.ctx, "list", "", func() rlc.Request {
		return rlc.List_next_start(l.handle)
	})
	if l.err = err; err != nil {
		l.info = nil
		return false
	}
	l.client.common.free(request)
	l.info = readInfo(rlc.List_info(l.handle))
	return true
}

// Info returns a snapshot of the lock that Next found.
func (l *List) Info() *Info { return l.info }

// Err returns the error that stopped Next; nil at the end of the list.
func (l *List) Err() error {
	if l.err != nil && statusOf(l.err) == ErrEnd {
		return nil
	}
	return l.err
}

// NodeState is the state of a server of a client, as last known.
type NodeState int

const (
	// NodeUnknown: no attempt to connect has ended yet.
	NodeUnknown NodeState = rlc.RL_NODE_UNKNOWN
	// NodeUp: connected; the server of a Redlock may vote.
	NodeUp NodeState = rlc.RL_NODE_UP
	// NodePolled: connected, but waiters poll, which is slower: a right is missing, or there is a
	// proxy.
	NodePolled NodeState = rlc.RL_NODE_POLLED
	// NodeNoVote: a server of a Redlock that is connected, but has no vote now.
	NodeNoVote NodeState = rlc.RL_NODE_NO_VOTE
	// NodeAway: not connected.
	NodeAway NodeState = rlc.RL_NODE_AWAY
)

// NodeRole is the role of a server.
type NodeRole int

const (
	// RoleUnknown: not known.
	RoleUnknown NodeRole = rlc.RL_ROLE_UNKNOWN
	// RolePrimary: a primary.
	RolePrimary NodeRole = rlc.RL_ROLE_PRIMARY
	// RoleReplica: a replica, which has no vote.
	RoleReplica NodeRole = rlc.RL_ROLE_REPLICA
	// RoleClusterMember: a member of a cluster.
	RoleClusterMember NodeRole = rlc.RL_ROLE_CLUSTER_MEMBER
)

// Level is the severity of a finding.
type Level int

const (
	// LevelUnknown: the check had no result: a right is missing, or no answer came.
	LevelUnknown Level = rlc.RL_LEVEL_UNKNOWN
	// LevelOK: all is well.
	LevelOK Level = rlc.RL_LEVEL_OK
	// LevelWarn: locks may be lost, or are slower.
	LevelWarn Level = rlc.RL_LEVEL_WARN
	// LevelFail: a lock may have two holders, or cannot be acquired.
	LevelFail Level = rlc.RL_LEVEL_FAIL
)

// String returns "unknown", "ok", "warn" or "fail".
func (l Level) String() string {
	names := [...]string{"unknown", "ok", "warn", "fail"}
	if l < 0 || int(l) >= len(names) {
		return "Level(" + strconv.Itoa(int(l)) + ")"
	}
	return names[l]
}

// Check checks each server now for what endangers locks there, such as eviction. The check acquires
// a lock of its own, which leaves no key behind. It tries to connect until ctx ends; without a
// deadline it tries once. Each server of a Redlock gets one try. A server that refuses a question
// gives a finding of LevelUnknown and no error.
func (c *base) Check(ctx context.Context) ([]Finding, error) {
	defer runtime.KeepAlive(c)
	request, err := c.reach(ctx, "check", rlc.Client_check_start)
	if err != nil {
		return nil, err
	}
	defer c.common.free(request)
	handle := rlc.Request_take_info(request)
	if handle == 0 {
		return nil, &Error{Op: "check", Status: ErrNoMemory}
	}
	defer rlc.Info_free(handle)
	findings := []Finding{}
	for _, one := range rowsOf(handle, rlc.RL_PART_FINDING) {
		findings = append(findings, one.asFinding())
	}
	return findings, nil
}

// Votes reports whether the server is connected and, in a Redlock, may vote.
func (n NodeInfo) Votes() bool { return n.State == NodeUp || n.State == NodePolled }

// Info returns the last known state of each server, in the order of the URLs. It sends nothing.
func (c *base) Info() ([]NodeInfo, error) {
	defer runtime.KeepAlive(c)
	call := newCall("info", "")
	defer call.free()
	handle := rlc.Client_info(c.handle, call.handle)
	if handle == 0 {
		return nil, call.failure()
	}
	defer rlc.Info_free(handle)
	nodes := []NodeInfo{}
	for _, one := range rowsOf(handle, rlc.RL_PART_NODE) {
		nodes = append(nodes, one.asNodeInfo())
	}
	for _, one := range rowsOf(handle, rlc.RL_PART_FINDING) {
		node := &nodes[one.number(rlc.RL_FIELD_NODE)]
		node.Findings = append(node.Findings, one.asFinding())
	}
	return nodes, nil
}

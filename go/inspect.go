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

// Info is a snapshot of a lock. Its times come from the server's clock; do not compare them with
// the local clock.
type Info struct {
	Name       string
	State      LockState
	Type       string        // type of the key; "none" if the lock is free
	Remaining  time.Duration // until the lease ends on the server; Forever: a key without expiry
	Fence      int64         // the last fence that the server granted; 0 if not known
	Owner      string        // owner of a reentrant lock; "" if it is free or of another kind
	Holding    int64         // number of readers, or leases of the owner; Holders may have fewer
	Waiting    int64         // number of waiters; Waiters may have fewer
	ServerTime time.Time     // the server's clock at the time of the snapshot
	Holders    []Holder
	Waiters    []Waiter // in the order of the queue
}

// Holder is a holder of a lock: a reader, a writer, or one acquisition of an owner.
type Holder struct {
	Token     string // the token, or the value of a foreign key
	Who       string // host name and process id, or the option "holder"; "" if not known
	Label     string // the option Label of the acquisition; "" without one
	Mode      Mode
	Since     time.Time     // when it was granted; zero if not known
	Remaining time.Duration // until the lease ends on the server; Forever: a key without expiry
}

// Waiter is a waiter for a lock.
type Waiter struct {
	Token string
	Who   string // host name and process id, or the option "holder"; "" if not known
	Mode  Mode
	Since time.Time // when it joined the queue; zero if not known
}

// Inspect returns a snapshot of the lock name, as the server has it. It changes nothing.
func (c *Client) Inspect(ctx context.Context, name string) (*Info, error) {
	defer runtime.KeepAlive(c)
	request, err := c.session.ask(ctx, "inspect", name, func() rlc.Request {
		return rlc.Inspect_start(c.handle, name)
	})
	if err != nil {
		return nil, err
	}
	defer c.session.free(request)
	handle := rlc.Request_take_info(request)
	if handle == 0 {
		return nil, &Error{Op: "inspect", Name: name, Status: ErrNoMemory}
	}
	defer rlc.Info_free(handle)
	return readInfo(handle), nil
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

func (r row) remaining() time.Duration {
	if left := r.number(rlc.RL_FIELD_REMAINING_MS); left >= 0 {
		return ms(left)
	}
	return Forever
}

func readInfo(handle rlc.Info) *Info {
	lock := row{handle, rlc.RL_PART_LOCK, 0}
	info := &Info{
		Name:       lock.text(rlc.RL_FIELD_NAME),
		State:      LockState(lock.number(rlc.RL_FIELD_STATE)),
		Type:       lock.text(rlc.RL_FIELD_TYPE),
		Remaining:  lock.remaining(),
		Fence:      lock.number(rlc.RL_FIELD_FENCE),
		Owner:      lock.text(rlc.RL_FIELD_OWNER),
		Holding:    lock.number(rlc.RL_FIELD_HOLDING),
		Waiting:    lock.number(rlc.RL_FIELD_WAITING),
		ServerTime: lock.time(rlc.RL_FIELD_SERVER_MS),
	}
	for i := 0; i < rlc.Info_count(handle, rlc.RL_PART_HOLDER); i++ {
		one := row{handle, rlc.RL_PART_HOLDER, i}
		info.Holders = append(info.Holders, Holder{
			Token:     one.text(rlc.RL_FIELD_TOKEN),
			Who:       one.text(rlc.RL_FIELD_HOLDER),
			Label:     one.text(rlc.RL_FIELD_LABEL),
			Mode:      Mode(one.number(rlc.RL_FIELD_MODE)),
			Since:     one.time(rlc.RL_FIELD_SINCE_MS),
			Remaining: one.remaining(),
		})
	}
	for i := 0; i < rlc.Info_count(handle, rlc.RL_PART_WAITER); i++ {
		one := row{handle, rlc.RL_PART_WAITER, i}
		info.Waiters = append(info.Waiters, Waiter{
			Token: one.text(rlc.RL_FIELD_TOKEN),
			Who:   one.text(rlc.RL_FIELD_HOLDER),
			Mode:  Mode(one.number(rlc.RL_FIELD_MODE)),
			Since: one.time(rlc.RL_FIELD_SINCE_MS),
		})
	}
	return info
}

// ForceRelease removes the holder with this token, or foreign value, and the next waiter gets the
// lock. For operators. The fence rises; the holder finds out at its next renewal or release.
// Errors:
//
//   - ErrNotHeld: that token does not hold the lock.
//   - ErrInvalid: the token is empty.
func (c *Client) ForceRelease(ctx context.Context, name, token string) error {
	return c.force(ctx, name, func() rlc.Request {
		return rlc.Force_release_start(c.handle, name, token)
	})
}

// ForceReleaseAny is ForceRelease of all holders. The error is ErrNotHeld if the lock is free.
func (c *Client) ForceReleaseAny(ctx context.Context, name string) error {
	return c.force(ctx, name, func() rlc.Request {
		return rlc.Force_release_any_start(c.handle, name)
	})
}

func (c *Client) force(ctx context.Context, name string, start func() rlc.Request) error {
	defer runtime.KeepAlive(c)
	if ctx.Err() != nil {
		return endedError(ctx, "force-release", name, ErrCancelled)
	}
	request, err := c.session.ask(ctx, "force-release", name, start)
	if err != nil {
		return sent(err)
	}
	c.session.free(request)
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
	request, err := l.client.session.ask(l.ctx, "list", "", func() rlc.Request {
		return rlc.List_next_start(l.handle)
	})
	if l.err = err; err != nil {
		l.info = nil
		return false
	}
	l.client.session.free(request)
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

// Finding is a result of a check of a server.
type Finding struct {
	Address string // address of the server, without secrets
	ID      string // the check, such as "eviction"
	Level   Level
	Seen    string // the value that was found
	Advice  string // a remedy; "" if none is needed
}

func readFinding(handle rlc.Info, i int) Finding {
	found := row{handle, rlc.RL_PART_FINDING, i}
	return Finding{
		Address: found.text(rlc.RL_FIELD_ADDRESS),
		ID:      found.text(rlc.RL_FIELD_ID),
		Level:   Level(found.number(rlc.RL_FIELD_LEVEL)),
		Seen:    found.text(rlc.RL_FIELD_SEEN),
		Advice:  found.text(rlc.RL_FIELD_ADVICE),
	}
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
	defer c.session.free(request)
	handle := rlc.Request_take_info(request)
	if handle == 0 {
		return nil, &Error{Op: "check", Status: ErrNoMemory}
	}
	defer rlc.Info_free(handle)
	findings := make([]Finding, rlc.Info_count(handle, rlc.RL_PART_FINDING))
	for i := range findings {
		findings[i] = readFinding(handle, i)
	}
	return findings, nil
}

// NodeInfo is a server of a client, as last known.
type NodeInfo struct {
	Address string
	State   NodeState
	Reason  string // the reason of NodePolled, NodeNoVote and NodeAway; else ""
	Role    NodeRole
	Version string // name and version, such as "Valkey 8.0.1"; "" if not known
	// ClockDifference is how far its clock was ahead of the local clock; 0 unless HasClock.
	ClockDifference time.Duration
	HasClock        bool
	Findings        []Finding // the findings of its last check; empty before the first
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
	nodes := make([]NodeInfo, rlc.Info_count(handle, rlc.RL_PART_NODE))
	for i := range nodes {
		node := row{handle, rlc.RL_PART_NODE, i}
		nodes[i] = NodeInfo{
			Address: node.text(rlc.RL_FIELD_ADDRESS),
			State:   NodeState(node.number(rlc.RL_FIELD_STATE)),
			Reason:  node.text(rlc.RL_FIELD_REASON),
			Role:    NodeRole(node.number(rlc.RL_FIELD_ROLE)),
			Version: node.text(rlc.RL_FIELD_VERSION),
		}
		if rlc.Info_has(handle, rlc.RL_PART_NODE, i, rlc.RL_FIELD_CLOCK_MS) != 0 {
			nodes[i].HasClock = true
			nodes[i].ClockDifference = ms(node.number(rlc.RL_FIELD_CLOCK_MS))
		}
	}
	for i := 0; i < rlc.Info_count(handle, rlc.RL_PART_FINDING); i++ {
		found := row{handle, rlc.RL_PART_FINDING, i}
		node := &nodes[found.number(rlc.RL_FIELD_NODE)]
		node.Findings = append(node.Findings, readFinding(handle, i))
	}
	return nodes, nil
}

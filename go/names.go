// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"redlatch.io/redlatch/internal/rlc"
)

// NamedMode is one of the names of LockAll, of any bytes, with its mode. [Read] and [Write] make
// it.
type NamedMode struct {
	Name string
	Mode Mode // ModeRead or ModeWrite
}

// Read is a name that LockAll acquires as RLock does.
func Read(name string) NamedMode { return NamedMode{name, ModeRead} }

// Write is a name that LockAll acquires as Lock does.
func Write(name string) NamedMode { return NamedMode{name, ModeWrite} }

// LockAll acquires all names, which must differ, or none of them. It waits until ctx ends. The
// lease is held while every name is, and lost as soon as one is. The reason of the loss names that
// part, and the other names are released. Fences has the fence of each name; Name, Token, Mode and
// Fence are those of the first one. The lease cannot be detached, upgraded or downgraded.
//
// The order of the names does not matter: calls of LockAll never wait for each other in a circle.
// Locks that are acquired one after the other can. While it waits for one name, LockAll may hold
// others, so that further callers wait too: pass few names.
//
// The options are those of each name; TTL, NoRenew, MaxHold, Label and Confirm, for example. The
// error is ErrInvalid for Owner and AsReentrant. Otherwise as Lock, with the same errors; their
// message says which name was not free.
//
//	both := []redlatch.NamedMode{redlatch.Write("account/1"), redlatch.Write("account/2")}
//	lease, err := client.LockAll(ctx, both)
//	if err != nil { .. }
//	defer lease.Unlock(context.WithoutCancel(ctx))
func (c *Client) LockAll(ctx context.Context, names []NamedMode, options ...Option) (*Lease,
	error) {
	return c.takeAll(ctx, "lock-all", "", names, waitMs(ctx), options)
}

// TryLockAll is LockAll with one try. The error is ErrBusy if a name is held or waited for.
func (c *Client) TryLockAll(ctx context.Context, names []NamedMode, options ...Option) (*Lease,
	error) {
	return c.takeAll(ctx, "lock-all", "", names, noWait, options)
}

// LockPath acquires a path, such as "a/b/c": that name to write, and the names above it, "a" and
// "a/b", to read. docs/paths.md says what a path is, and which other locks it excludes. The error
// is ErrInvalid if a component is empty, or there are too many. Name, Token, Mode and Fence of the
// lease are those of the whole path. Otherwise as LockAll.
func (c *Client) LockPath(ctx context.Context, path string, options ...Option) (*Lease, error) {
	return c.takePath(ctx, path, waitMs(ctx), options)
}

// TryLockPath is LockPath with one try.
func (c *Client) TryLockPath(ctx context.Context, path string, options ...Option) (*Lease, error) {
	return c.takePath(ctx, path, noWait, options)
}

func (c *Client) takePath(ctx context.Context, path string, wait int64, options []Option) (*Lease,
	error) {
	names, err := namesOf(path)
	if err != nil {
		return nil, about(err, "lock-path", path)
	}
	return c.takeAll(ctx, "lock-path", path, names, wait, options)
}

// namesOf has the whole path first: a lease of several names has the fence of the first one, and a
// reader's fence does not tell writers of the path apart.
func namesOf(path string) ([]NamedMode, error) {
	parts := strings.Split(path, "/")
	if slices.Contains(parts, "") {
		return nil, invalidPath("no empty component (got %s)", quoted(path))
	}
	if len(parts) > rlc.RL_MAX_NAMES {
		return nil, invalidPath("at most %d components (got %d)", rlc.RL_MAX_NAMES, len(parts))
	}
	names := []NamedMode{Write(path)}
	for i := 1; i < len(parts); i++ {
		names = append(names, Read(strings.Join(parts[:i], "/")))
	}
	return names, nil
}

func invalidPath(format string, values ...any) error {
	return &Error{Status: ErrInvalid, Message: "path must have " + fmt.Sprintf(format, values...)}
}

// takeAll does not report a goroutine that waits for its own client: such a report has one name.
func (c *Client) takeAll(ctx context.Context, op, name string, names []NamedMode, wait int64,
	options []Option) (*Lease, error) {
	defer runtime.KeepAlive(c)
	made, err := makeNames(names)
	if err != nil {
		return nil, about(err, op, name)
	}
	defer rlc.Names_free(made)
	names = slices.Clone(names) // The caller may change them while it waits.
	start := func(_ string, wait int64, options rlc.AcquireOptions) rlc.Request {
		return rlc.Acquire_all_start(c.handle, made, wait, options)
	}
	lease, err := c.common.acquire(ctx, c, op, name, wait, options, start)
	if err != nil {
		return nil, err
	}
	lease.names = names
	return lease, nil
}

func makeNames(names []NamedMode) (rlc.Names, error) {
	c := newCall("", "")
	defer c.free()
	made := rlc.Names_new()
	if made == 0 {
		return 0, &Error{Status: ErrNoMemory}
	}
	for _, one := range names {
		if rlc.Names_add(made, one.Name, int(one.Mode), c.handle) != int(OK) {
			rlc.Names_free(made)
			return 0, c.failure()
		}
	}
	return made, nil
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"context"
	"runtime"
	"strings"

	"redlatch.io/redlatch/internal/rlc"
)

// Redlock takes locks on most of several independent servers, so that they outlive the failure of
// the others. docs/redlock.md says what that gives, and what not. Any goroutine may use it.
type Redlock struct {
	session *session
	handle  rlc.Redlock // as that of a Client
	origin  *origin
}

// OpenRedlock makes a Redlock over the servers at urls, an odd number up to 15. It does not touch
// the network.
func OpenRedlock(urls []string, options ...ClientOption) (*Redlock, error) {
	c := newCall("open", "")
	defer c.free()
	made, err := c.makeClientOptions(options)
	if err != nil {
		return nil, err
	}
	defer rlc.Client_options_free(made)
	handle := rlc.Redlock_open(lines(urls), made, c.handle)
	if handle == 0 {
		return nil, c.failure()
	}
	redlock := &Redlock{newSession(nil), handle, newOrigin()}
	runtime.SetFinalizer(redlock, func(r *Redlock) {
		r.session.leave("redlock", r.origin, func() { rlc.Redlock_close(r.handle) })
	})
	return redlock, nil
}

// lines joins the URLs, one to a line. An empty URL stays an empty line.
func lines(urls []string) string {
	if len(urls) == 0 {
		return ""
	}
	return strings.Join(urls, "\n") + "\n"
}

// DialRedlock makes a Redlock and connects it, until most of the servers may vote or ctx ends;
// without a deadline it tries each of them once.
func DialRedlock(ctx context.Context, urls []string, options ...ClientOption) (*Redlock, error) {
	redlock, err := OpenRedlock(urls, options...)
	if err != nil {
		return nil, err
	}
	if err := redlock.Connect(ctx); err != nil {
		_ = redlock.Close()
		return nil, err
	}
	return redlock, nil
}

// Connect connects now, until most of the servers may vote or ctx ends; without a deadline it tries
// each of them once.
func (r *Redlock) Connect(ctx context.Context) error {
	defer runtime.KeepAlive(r)
	return r.session.connect(ctx, func(wait int64) rlc.Request {
		return rlc.Redlock_connect_start(r.handle, wait)
	})
}

// Close is as that of a Client.
func (r *Redlock) Close() error {
	defer runtime.KeepAlive(r)
	r.session.close(func() { rlc.Redlock_shutdown(r.handle) })
	return nil
}

// Option is as that of a Client; "nodes" is a line for each server: its address, and "votes" or why
// it does not.
func (r *Redlock) Option(name string) string {
	defer runtime.KeepAlive(r)
	return text(func(buffer []byte) int64 { return rlc.Redlock_option(r.handle, name, buffer) })
}

// Lock acquires the lock name on most of the servers, waiting until ctx ends. Only TTL, NoRenew,
// MaxHold and Label count here. The lease is one as any other, but that its fence is 0 without the
// option "fenced", and that it cannot be attached.
func (r *Redlock) Lock(ctx context.Context, name string, options ...Option) (*Lease, error) {
	defer runtime.KeepAlive(r)
	return r.session.take(ctx, r, "lock", name, waitMs(ctx), options, r.start)
}

// TryLock is Lock without waiting.
func (r *Redlock) TryLock(ctx context.Context, name string, options ...Option) (*Lease, error) {
	defer runtime.KeepAlive(r)
	return r.session.take(ctx, r, "lock", name, noWait, options, r.start)
}

func (r *Redlock) start(name string, wait int64, options rlc.AcquireOptions) rlc.Request {
	return rlc.Redlock_acquire_start(r.handle, name, wait, options)
}

// Do is as that of a Client.
func (r *Redlock) Do(ctx context.Context, name string, work func(context.Context) error,
	options ...Option) error {
	return do(ctx, r, name, work, options)
}

// Locker is as that of a Client.
func (r *Redlock) Locker(name string, options ...Option) *Locker {
	return &Locker{locks: r, name: name, options: options}
}

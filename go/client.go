// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"context"
	"runtime"

	"redlatch.io/redlatch/internal/rlc"
)

// Client takes locks from one server. Any goroutine may use it, and one is enough for a process: it
// holds one connection.
type Client struct{ base }

// base is what a Client and a Redlock share.
type base struct {
	session *session
	handle  rlc.Client // freed by the finalizer only, so that any call may be under way
	origin  *origin
}

// Open makes a client for the server at url: redis://, valkey://, unix:// or embedded://, as in
// docs/url.md. It does not touch the network: Connect does, or the first lock.
func Open(url string, options ...ClientOption) (*Client, error) {
	c := newCall("open", "")
	defer c.free()
	made, err := c.makeClientOptions(options)
	if err != nil {
		return nil, err
	}
	defer rlc.Client_options_free(made)
	handle := rlc.Client_open(url, made, c.handle)
	if handle == 0 {
		return nil, c.failure()
	}
	drive := func(queue rlc.Queue) { rlc.Queue_drive(queue, handle) }
	client := &Client{base{newSession(drive), handle, newOrigin()}}
	runtime.SetFinalizer(client, func(c *Client) { c.leave("client") })
	return client, nil
}

// Dial makes a client and connects it, trying again until ctx ends; without a deadline it tries
// once. With FromEnv() the url may be empty.
func Dial(ctx context.Context, url string, options ...ClientOption) (*Client, error) {
	client, err := Open(url, options...)
	if err != nil {
		return nil, err
	}
	if err := client.Connect(ctx); err != nil {
		_ = client.Close()
		return nil, err
	}
	return client, nil
}

// Connect connects now, so that a wrong address or password shows at once; a Redlock until most of
// the servers may vote. It tries again until ctx ends; without a deadline it tries once.
func (c *base) Connect(ctx context.Context) error {
	defer runtime.KeepAlive(c)
	request, err := c.reach(ctx, "connect", rlc.Client_connect_start)
	if err != nil {
		return err
	}
	c.session.free(request)
	return nil
}

// reach waits for a request that connects until ctx ends; without a deadline it tries once.
func (c *base) reach(ctx context.Context, op string,
	start func(rlc.Client, int64) rlc.Request) (rlc.Request, error) {
	if ctx.Err() != nil {
		return 0, endedError(ctx, op, "", ErrCancelled)
	}
	wait := waitMs(ctx)
	if wait < 0 {
		wait = noWait
	}
	request := start(c.handle, wait)
	if request == 0 {
		return 0, &Error{Op: op, Status: ErrNoMemory}
	}
	if status := c.session.pump.await(ctx, request); status != OK {
		defer c.session.free(request)
		return 0, failed(ctx, op, "", status, request, wait)
	}
	return request, nil
}

// Close ends the client's work. Held leases are released: the call waits for that at most
// command_timeout, and then for the logger of LogTo, if there are lines left. Calls that wait end
// with ErrClosed; when the last has returned, no descriptor of the client is open. A second Close
// does nothing. The error is always nil.
func (c *base) Close() error {
	defer runtime.KeepAlive(c)
	rlc.Client_shutdown(c.handle)
	if lines := c.session.lines.Load(); lines != nil {
		lines.writeAll()
		lines.stop()
	}
	if source := c.session.source.Load(); source != nil {
		source.stop()
	}
	c.session.closed.Store(true)
	c.session.pump.close()
	return nil
}

// Option is what the client was told, by any way, under the name of an option; or its "url",
// without secrets, those of a Redlock one to a line.
func (c *base) Option(name string) string {
	defer runtime.KeepAlive(c)
	return text(func(buffer []byte) int64 { return rlc.Client_option(c.handle, name, buffer) })
}

// text asks for a text of unknown length. The library puts a NUL behind it.
func text(write func([]byte) int64) string {
	buffer := make([]byte, 128)
	for {
		length := write(buffer)
		if length < int64(len(buffer)) {
			return string(buffer[:length])
		}
		buffer = make([]byte, length+1)
	}
}

// Lock acquires the lock name, of any bytes. It waits in line until ctx ends, and
// rides out outages of the server meanwhile. The lock is held until it is unlocked or lost; ctx has
// no part in that.
//
// A Redlock takes it on most of its servers; only TTL, NoRenew, MaxHold and Label count there, the
// fence is 0 without the option "fenced", and the lease cannot be attached.
//
// A wait that ctx has ended leaves nothing behind; its error Is ctx.Err() and context.Cause(ctx).
// What was in the way is its status: ErrTimeout (and ErrBusy) for others, ErrUnavailable for the
// server.
func (c *base) Lock(ctx context.Context, name string, options ...Option) (*Lease, error) {
	defer runtime.KeepAlive(c)
	return c.session.take(ctx, c, "lock", name, waitMs(ctx), options, c.startLock)
}

// TryLock is Lock without waiting: ErrBusy if somebody else holds it, or waits for it.
func (c *base) TryLock(ctx context.Context, name string, options ...Option) (*Lease, error) {
	defer runtime.KeepAlive(c)
	return c.session.take(ctx, c, "lock", name, noWait, options, c.startLock)
}

// RLock acquires the read-write lock name to read: together with others that read, never with one
// that writes. All wait in one line. Otherwise as Lock.
func (c *Client) RLock(ctx context.Context, name string, options ...Option) (*Lease, error) {
	defer runtime.KeepAlive(c)
	return c.session.take(ctx, c, "read-lock", name, waitMs(ctx), options, c.startRLock)
}

// TryRLock is RLock without waiting.
func (c *Client) TryRLock(ctx context.Context, name string, options ...Option) (*Lease, error) {
	defer runtime.KeepAlive(c)
	return c.session.take(ctx, c, "read-lock", name, noWait, options, c.startRLock)
}

// WLock acquires the read-write lock name to write: alone. It is the mutex of that name. Otherwise
// as Lock.
func (c *Client) WLock(ctx context.Context, name string, options ...Option) (*Lease, error) {
	defer runtime.KeepAlive(c)
	return c.session.take(ctx, c, "write-lock", name, waitMs(ctx), options, c.startWLock)
}

// TryWLock is WLock without waiting.
func (c *Client) TryWLock(ctx context.Context, name string, options ...Option) (*Lease, error) {
	defer runtime.KeepAlive(c)
	return c.session.take(ctx, c, "write-lock", name, noWait, options, c.startWLock)
}

func (c *base) startLock(name string, wait int64, options rlc.AcquireOptions) rlc.Request {
	return rlc.Acquire_start(c.handle, name, wait, options)
}

func (c *Client) startRLock(name string, wait int64, options rlc.AcquireOptions) rlc.Request {
	return rlc.Rw_acquire_read_start(c.handle, name, wait, options)
}

func (c *Client) startWLock(name string, wait int64, options rlc.AcquireOptions) rlc.Request {
	return rlc.Rw_acquire_write_start(c.handle, name, wait, options)
}

// Reentrant takes locks that their owner may take again.
type Reentrant struct {
	client *Client
	owner  string
}

// Reentrant gives the reentrant locks of owner, as [Owner] has it. Go has no identity of
// goroutines: all that name the same owner, in any process, are one owner.
func (c *Client) Reentrant(owner string) Reentrant { return Reentrant{c, owner} }

// Lock acquires the lock name as Client.Lock does; while the owner holds it, at once and past those
// who wait. Each acquisition is a lease of its own, and the lock is free when the last has ended.
func (r Reentrant) Lock(ctx context.Context, name string, options ...Option) (*Lease, error) {
	return r.client.Lock(ctx, name, append(options[:len(options):len(options)],
		reentrant(r.owner))...)
}

// TryLock is Lock without waiting.
func (r Reentrant) TryLock(ctx context.Context, name string, options ...Option) (*Lease, error) {
	return r.client.TryLock(ctx, name, append(options[:len(options):len(options)],
		reentrant(r.owner))...)
}

// Do holds the lock name while work goes on. The context of work ends with ctx, or with a cause
// that Is ErrLost when the lock is lost. The error is that of work, joined with ErrLost if others
// may have worked at the same time, or ErrClosed if Close gave it back meanwhile; or that of Lock,
// and then work was not begun. A Do of the same name in the work would wait for itself.
func (c *base) Do(ctx context.Context, name string, work func(context.Context) error,
	options ...Option) error {
	return do(ctx, c, name, work, options)
}

// Locker gives the lock name as a sync.Locker.
func (c *base) Locker(name string, options ...Option) *Locker {
	return &Locker{locks: c, name: name, options: options}
}

// Attach takes over a lease that was detached, here or in another process: once for each Detach. Of
// the options TTL, NoRenew, MaxHold and Label count; those of the detached lease do not travel. Its
// fence is 0: AttachFence has it.
//
// ErrNotHeld if the token does not hold the lock, was not detached, or was attached before;
// ErrOutcomeUnknown if no answer came, or ctx ended: the next Attach shows whether the lease is
// still detached. If ctx ended after the call was sent, the lease is detached again in the
// background.
func (c *Client) Attach(ctx context.Context, name, token string, options ...Option) (*Lease,
	error) {
	return c.AttachFence(ctx, name, token, 0, options...)
}

// AttachFence is Attach of a lease whose fence is known: fence is Fence of the detached lease,
// which travels beside the token.
func (c *Client) AttachFence(ctx context.Context, name, token string, fence int64,
	options ...Option) (*Lease, error) {
	defer runtime.KeepAlive(c)
	made, err := makeOptions(options)
	if err != nil {
		return nil, about(err, "attach", name)
	}
	request, err := c.session.ask(ctx, "attach", name, func() rlc.Request {
		return rlc.Lease_attach_start(c.handle, name, token, fence, made)
	})
	rlc.Acquire_options_free(made)
	if err != nil {
		return nil, sent(err)
	}
	defer c.session.free(request)
	handle := rlc.Request_take_lease(request)
	if handle == 0 {
		return nil, &Error{Op: "attach", Name: name, Status: ErrNoMemory}
	}
	return newLease(ctx, c.session, c, handle), nil
}

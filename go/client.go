// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"context"
	"runtime"

	"redlatch.io/redlatch/internal/rlc"
)

// Client acquires locks on one server, a Sentinel group or a Cluster. Any goroutine may use it, and
// a process needs one.
type Client struct{ base }

// base has the parts that a Client and a Redlock share.
type base struct {
	common *common
	handle rlc.Client // freed by the finalizer only, so that any call may be under way
	origin *origin
}

// Open makes a client for the server at url: redis://, valkey://, unix:// or embedded://, as in
// docs/url.md. It does not touch the network: Connect does, or the first lock. The error is
// ErrInvalid if the URL or an option is wrong; the message names the part and what is allowed.
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
	client := &Client{base{newCommon(drive), handle, newOrigin()}}
	runtime.SetFinalizer(client, func(c *Client) { c.leave("client") })
	return client, nil
}

// Dial makes a client and connects it. It tries again until ctx ends; without a deadline it tries
// once. With FromEnv the url may be empty.
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

// Connect connects now, so that a wrong address or password shows at once. A Redlock is connected
// when most of its servers may vote. Connect tries again until ctx ends; without a deadline it
// tries once.
//
// Errors: ErrUnavailable, ErrDenied, ErrUnsupported, ErrInvalid, ErrServer; ErrCancelled if ctx was
// cancelled.
func (c *base) Connect(ctx context.Context) error {
	defer runtime.KeepAlive(c)
	request, err := c.reach(ctx, "connect", rlc.Client_connect_start)
	if err != nil {
		return err
	}
	c.common.free(request)
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
	if status := c.common.pump.await(ctx, request); status != OK {
		defer c.common.free(request)
		return 0, failed(ctx, op, "", status, request, wait)
	}
	return request, nil
}

// Close releases all held leases, and ends waiting calls with ErrClosed. It blocks for at most
// command_timeout, and then until the logger of LogTo has the last lines. No descriptor of the
// client is open after Close and the last waiting call have returned. A second Close does nothing.
// The error is always nil.
func (c *base) Close() error {
	defer runtime.KeepAlive(c)
	rlc.Client_shutdown(c.handle)
	if lines := c.common.lines.Load(); lines != nil {
		lines.writeAll()
		lines.stop()
	}
	if source := c.common.source.Load(); source != nil {
		source.stop()
	}
	if !c.common.closed.Swap(true) {
		close(c.common.ended)
	}
	c.common.pump.close()
	return nil
}

// Option returns the value of an option, wherever it was set. The name "url" gives the URL without
// secrets, with one line for each server of a Redlock. It sends nothing.
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

// Lock acquires the lock name, of any bytes. It waits in the queue until ctx ends, also during an
// outage of the server. The lock is held until it is unlocked or lost: the end of ctx does not
// release it.
//
// A Redlock acquires it on most of its servers. Only TTL, NoRenew, MaxHold and Label are used
// there, the fence is 0 without the option "fenced", and the lease cannot be attached.
//
// A wait that ctx has ended leaves nothing behind; errors.Is finds ctx.Err() and
// context.Cause(ctx). The status says what was in the way:
//
//   - ErrTimeout, and ErrBusy: another holder has the lock.
//   - ErrUnavailable: the server could not be reached.
func (c *base) Lock(ctx context.Context, name string, options ...Option) (*Lease, error) {
	defer runtime.KeepAlive(c)
	return c.common.take(ctx, c, "lock", name, waitMs(ctx), options, c.startLock)
}

// TryLock is Lock with one try. The error is ErrBusy if the lock is held or waited for.
func (c *base) TryLock(ctx context.Context, name string, options ...Option) (*Lease, error) {
	defer runtime.KeepAlive(c)
	return c.common.take(ctx, c, "lock", name, noWait, options, c.startLock)
}

// RLock acquires the read-write lock name to read: together with other readers, never with a
// writer. Readers and writers have one queue. Otherwise as Lock.
func (c *Client) RLock(ctx context.Context, name string, options ...Option) (*Lease, error) {
	defer runtime.KeepAlive(c)
	return c.common.take(ctx, c, "read-lock", name, waitMs(ctx), options, c.startRLock)
}

// TryRLock is RLock with one try.
func (c *Client) TryRLock(ctx context.Context, name string, options ...Option) (*Lease, error) {
	defer runtime.KeepAlive(c)
	return c.common.take(ctx, c, "read-lock", name, noWait, options, c.startRLock)
}

// WLock acquires the read-write lock name to write: alone. It is the lock of Lock of that name.
// Otherwise as Lock.
func (c *Client) WLock(ctx context.Context, name string, options ...Option) (*Lease, error) {
	defer runtime.KeepAlive(c)
	return c.common.take(ctx, c, "write-lock", name, waitMs(ctx), options, c.startWLock)
}

// TryWLock is WLock with one try.
func (c *Client) TryWLock(ctx context.Context, name string, options ...Option) (*Lease, error) {
	defer runtime.KeepAlive(c)
	return c.common.take(ctx, c, "write-lock", name, noWait, options, c.startWLock)
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

// Reentrant acquires locks that their owner may acquire again.
type Reentrant struct {
	client *Client
	owner  string
}

// Reentrant returns the reentrant locks of owner, with the range of [Owner]. Goroutines have no
// identity: all callers that name the same owner, in any process, are one owner.
func (c *Client) Reentrant(owner string) Reentrant { return Reentrant{c, owner} }

// Lock acquires the lock name as Client.Lock does. While the owner holds it, the owner gets it at
// once, past the queue. Each acquisition is a Lease of its own, and the lock is free when the last
// one has ended.
func (r Reentrant) Lock(ctx context.Context, name string, options ...Option) (*Lease, error) {
	return r.client.Lock(ctx, name, append(options[:len(options):len(options)],
		reentrant(r.owner))...)
}

// TryLock is Lock with one try.
func (r Reentrant) TryLock(ctx context.Context, name string, options ...Option) (*Lease, error) {
	return r.client.TryLock(ctx, name, append(options[:len(options):len(options)],
		reentrant(r.owner))...)
}

// Do holds the lock name while work runs. The context of work ends with ctx, or with the cause
// ErrLost when the lock is lost. A Do of the same name in work would wait for itself.
//
// The error is that of Lock, if work did not begin. Otherwise it is that of work, joined with
//
//   - ErrLost: the lock was lost; others may have worked at the same time.
//   - ErrClosed: Close released the lock meanwhile.
func (c *base) Do(ctx context.Context, name string, work func(context.Context) error,
	options ...Option) error {
	return do(ctx, c, name, work, options)
}

// Locker returns the lock name as a sync.Locker.
func (c *base) Locker(name string, options ...Option) *Locker {
	return &Locker{locks: c, name: name, options: options}
}

// Attach takes over a lease that was detached, here or in another process. Each Detach can be
// attached once. TTL, NoRenew, MaxHold and Label are used; the options of the detached lease are
// not kept. The fence is 0: AttachFence sets it.
//
// If ctx ends after the call was sent, the lease is detached again in the background. Errors:
//
//   - ErrNotHeld: the token does not hold the lock, was not detached, or was attached before.
//   - ErrOutcomeUnknown: no answer came, or ctx ended; the lease may no longer be attachable. The
//     next Attach shows it.
func (c *Client) Attach(ctx context.Context, name, token string, options ...Option) (*Lease,
	error) {
	return c.AttachFence(ctx, name, token, 0, options...)
}

// AttachFence is Attach with the Fence of the detached lease, which the caller stores beside the
// token.
func (c *Client) AttachFence(ctx context.Context, name, token string, fence int64,
	options ...Option) (*Lease, error) {
	defer runtime.KeepAlive(c)
	made, err := makeOptions(options)
	if err != nil {
		return nil, about(err, "attach", name)
	}
	request, err := c.common.ask(ctx, "attach", name, func() rlc.Request {
		return rlc.Lease_attach_start(c.handle, name, token, fence, made)
	})
	rlc.Acquire_options_free(made)
	if err != nil {
		return nil, sent(err)
	}
	defer c.common.free(request)
	handle := rlc.Request_take_lease(request)
	if handle == 0 {
		return nil, &Error{Op: "attach", Name: name, Status: ErrNoMemory}
	}
	return newLease(ctx, c.common, c, handle), nil
}

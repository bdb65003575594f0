// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"context"
	"runtime"
	"slices"
	"strconv"

	"redlatch.io/redlatch/internal/rlc"
)

// NoCap is the Cap of a semaphore for which an operator has set none.
const NoCap int64 = -1

// Semaphore is a lock with permits: at most its limit are out at once, over all processes. Unlike
// semaphore.Weighted of golang.org/x/sync, it has no Release(n): Acquire and TryAcquire return a
// Lease. Permits belong to their lease, which is renewed, lost and unlocked without the others; a
// number would not say which lease has ended. Any goroutine may use a Semaphore.
type Semaphore struct {
	client  *Client
	name    string
	limit   int64
	options []Option
}

// Semaphore returns the semaphore name, of which at most limit permits are out. It sends nothing,
// and the first acquisition reports a wrong argument. The options are those of each acquisition:
// TTL, NoRenew, MaxHold, Label and Confirm, for example. The error is ErrInvalid for Owner,
// AsReentrant and InFormat.
//
// The limit of a caller counts for its own acquisitions, so that all callers should pass the same
// one. The smaller one of it and the cap of an operator counts. A mutex or a read-write lock of the
// same name is busy while permits are out, and the reverse.
//
//	pool := client.Semaphore("database", 3)
//	lease, err := pool.Acquire(ctx, 1)
//	if err != nil { .. }
//	defer lease.Unlock(context.WithoutCancel(ctx))
//	query(lease.Context())
func (c *Client) Semaphore(name string, limit int64, options ...Option) *Semaphore {
	return &Semaphore{c, name, limit, slices.Clone(options)}
}

// Acquire acquires n permits, 1 to the limit. It waits in the queue until ctx ends. The queue is in
// order: an Acquire of few permits does not overtake one of many that came before. Each Acquire
// takes permits of its own, also in a goroutine that has some: the second one may then wait for the
// first. Otherwise as Client.Lock, with the same errors.
//
// The fences of leases tell the order of their grants. With several holders they cannot tell who
// holds now.
func (s *Semaphore) Acquire(ctx context.Context, n int64) (*Lease, error) {
	return s.take(ctx, n, waitMs(ctx))
}

// TryAcquire is Acquire with one try. The error is ErrBusy if too few permits are free, or another
// caller waits.
func (s *Semaphore) TryAcquire(ctx context.Context, n int64) (*Lease, error) {
	return s.take(ctx, n, noWait)
}

// take does not report a goroutine that waits for its own client: the goroutines of a client are
// supposed to wait for each other.
func (s *Semaphore) take(ctx context.Context, n, wait int64) (*Lease, error) {
	c := s.client
	defer runtime.KeepAlive(c)
	return c.common.acquire(ctx, c, "acquire", s.name, wait, s.optionsFor(n), c.startLock)
}

func (s *Semaphore) optionsFor(n int64) []Option {
	return append(s.options[:len(s.options):len(s.options)],
		Set("limit", strconv.FormatInt(s.limit, 10)), Set("permits", strconv.FormatInt(n, 10)))
}

// Attach takes over a lease of n permits that was detached, as Client.Attach does. The error is
// ErrNotHeld if n is not the number of permits of that lease.
func (s *Semaphore) Attach(ctx context.Context, n int64, token string) (*Lease, error) {
	return s.AttachFence(ctx, n, token, 0)
}

// AttachFence is Attach with the Fence of the detached lease.
func (s *Semaphore) AttachFence(ctx context.Context, n int64, token string, fence int64) (*Lease,
	error) {
	return s.client.AttachFence(ctx, s.name, token, fence, s.optionsFor(n)...)
}

// SemaphoreStats are the numbers of a semaphore, as the server has them.
type SemaphoreStats struct {
	// Permits that are out.
	Used int64
	// The limit that counts for this Semaphore: the smaller one of its own and the cap.
	Limit int64
	// The limit that an operator has set for all callers; NoCap without one.
	Cap int64
	// Number of waiters.
	Waiting int64
}

// Stats returns the numbers of the semaphore. The cost on the server does not depend on the numbers
// of holders and waiters. It changes nothing. Client.Inspect lists the holders and the waiters.
func (s *Semaphore) Stats(ctx context.Context) (SemaphoreStats, error) {
	info, err := s.client.look(ctx, "stats", s.name, rlc.Semaphore_stats_start)
	if err != nil {
		return SemaphoreStats{}, err
	}
	limit := s.limit
	if info.Cap != NoCap {
		limit = min(limit, info.Cap)
	}
	return SemaphoreStats{Used: info.Used, Limit: limit, Cap: info.Cap, Waiting: info.Waiting}, nil
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// Package redlatch has locks that processes on many hosts share, over one Redis or Valkey server,
// or over most of several. Users of redlatch in C, C++, Python and Java have the same locks.
//
//	client, err := redlatch.Dial(ctx, "redis://localhost:6379")
//	if err != nil { .. }
//	defer client.Close()
//
//	err = client.Do(ctx, "report", func(ctx context.Context) error {
//		return write(ctx, redlatch.LeaseOf(ctx).Fence())
//	})
//
// or, piece by piece:
//
//	lease, err := client.Lock(ctx, "report", redlatch.TTL(10*time.Second))
//	if err != nil { .. }
//	defer lease.Unlock(context.WithoutCancel(ctx))
//	work(lease.Context(), lease.Fence())
//
// [Client.Semaphore] is for a lock with several holders, [Client.RLock] for readers, and
// [Client.LockAll] for several names in one step. [Client.Once] is for a job that runs once in a
// period, [Client.SingleFlight] for a value that one caller computes for all, and [Client.Lead] for
// work that one process does until another one has to.
//
// A context limits a wait, and never how long a lock is held: a lock is held, and renewed in the
// background, until it is unlocked or lost. A loss ends [Lease.Context] with the cause ErrLost, as
// soon as a goroutine runs. [Lease.Check] reports the loss before another client can get the lock.
// Neither stops a program that is paused between its check and its write: only a resource that
// refuses lower fences does. docs/guarantees.md has the promises.
//
// A goroutine that waits uses no thread: waits go through one descriptor in the runtime's poller.
// Errors are an *[Error]. Use errors.Is to ask for a [Status], such as ErrBusy, or for the cause of
// the context. Any goroutine may use any object, unless its comment says otherwise.
//
// The package needs cgo, and the library libredlatch where pkg-config finds it: docs/go.md.
package redlatch

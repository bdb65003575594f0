// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// Package redlatch has locks that processes on many hosts share, over one Redis or Valkey server,
// or over most of several. They are the same locks as those of redlatch's users in C, C++ and
// Python.
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
// A context bounds a wait, and never how long a lock is held: a lock is held, and renewed in the
// background, until it is unlocked or lost. A loss ends Lease.Context with a cause that Is ErrLost,
// as soon as a goroutine can be told; Lease.Check knows it from the moment on at which somebody
// else may have the lock. Neither stops a program that is paused between its look and its write:
// only a resource that refuses lower fences does. docs/guarantees.md says what is promised.
//
// A goroutine that waits costs no thread: waits go through one descriptor in the runtime's poller.
// Errors are an *Error, and errors.Is asks for a Status, such as ErrBusy, or for what ended the
// context.
//
// The package needs cgo, and the library libredlatch where pkg-config finds it: docs/go.md.
package redlatch

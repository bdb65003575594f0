// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"redlatch.io/redlatch/internal/rlc"
)

// Credentials are what a server is given for AUTH.
type Credentials struct {
	User     string // empty: the default user
	Password string // or a token
	// Valid is the time from now for which they can be used, at least a second; 0: no end.
	Valid time.Duration
}

// String has no password.
func (c Credentials) String() string { return fmt.Sprintf("{%q *** %v}", c.User, c.Valid) }

// GoString has no password either.
func (c Credentials) GoString() string { return "redlatch.Credentials" + c.String() }

// CredentialsFrom has fetch give user and password, in place of those of the URL: when a connection
// needs them, before they end, and when a server has refused them. Held leases stay
// (docs/credentials.md). Use it between Open and Connect; another CredentialsFrom takes the place
// of the one before. fetch runs in a goroutine of its own; its context ends with stop and Close. An
// error of it is the reason of the ErrUnavailable that connections end with.
func (c *base) CredentialsFrom(fetch func(context.Context) (Credentials, error)) (stop func(),
	err error) {
	defer runtime.KeepAlive(c)
	ctx, cancel := context.WithCancel(context.Background())
	source := &credentialSource{client: c.handle, fetch: fetch, ctx: ctx, cancel: cancel}
	if before := c.session.source.Swap(source); before != nil {
		before.stop()
	}
	if status := source.watch(); status != OK {
		source.stop()
		return nil, &Error{Op: "credentials", Status: status}
	}
	return source.stop, nil
}

// credentialSource has the handle of its client only, so that the client can be collected, which
// stops it.
type credentialSource struct {
	pump   pump
	client rlc.Client
	fetch  func(context.Context) (Credentials, error)
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	tag     int64
	stopped bool
}

// watch has fetch called once.
func (s *credentialSource) watch() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return OK
	}
	var status Status
	s.tag, status = s.pump.watch(func(queue rlc.Queue, tag int64) int {
		return rlc.Client_credentials_watch(s.client, queue, tag)
	}, func() {
		// fetch may wait, which the pump may not.
		go func() {
			s.give(s.fetch(s.ctx))
			s.watch()
		}()
	})
	return status
}

func (s *credentialSource) give(fetched Credentials, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	if err == nil {
		c := newCall("credentials", "")
		defer c.free()
		valid := int64(-1)
		if fetched.Valid != 0 {
			valid = fetched.Valid.Milliseconds()
		}
		if rlc.Client_credentials_set(s.client, fetched.User, fetched.Password, valid,
			c.handle) == int(OK) {
			return
		}
		err = c.failure()
	}
	rlc.Client_credentials_fail(s.client, err.Error(), 0)
}

func (s *credentialSource) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	s.stopped = true
	s.cancel()
	s.pump.forget(s.tag)
	s.pump.close() // which ends the watch, as the queue is freed
}

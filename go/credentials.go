// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"redlatch.io/redlatch/internal/rlc"
)

// NoEnd is the Valid of credentials that stay good until others are given.
const NoEnd = time.Duration(math.MaxInt64)

const (
	minValid = rlc.RL_MIN_CREDENTIALS_MS * time.Millisecond
	// Between two attempts to ask or to answer for which there is no memory.
	noMemoryPause = time.Second
)

// Credentials are the user and the password for AUTH.
type Credentials struct {
	User     string // "": the default user
	Password string // or a token
	// Valid is the time from now for which they can be used, or NoEnd. 0 and less are errors, such
	// as time.Until of a token that has ended.
	Valid time.Duration
}

// String leaves the password out.
func (c Credentials) String() string { return fmt.Sprintf("{%q *** %v}", c.User, c.Valid) }

// GoString leaves the password out.
func (c Credentials) GoString() string { return "redlatch.Credentials" + c.String() }

// CredentialsFrom makes fetch give user and password, in place of those of the URL. Call it between
// Open and Connect; another CredentialsFrom replaces this one. Held leases are kept when the
// credentials change (docs/credentials.md).
//
// fetch is called in a goroutine of its own when a connection needs credentials, before they end,
// and when a server has refused them. Its context ends with stop and Close. If it fails,
// connections end with ErrUnavailable and the text of that error.
func (c *base) CredentialsFrom(fetch func(context.Context) (Credentials, error)) (stop func(),
	err error) {
	defer runtime.KeepAlive(c)
	ctx, cancel := context.WithCancel(context.Background())
	source := &credentialSource{client: c.handle, fetch: fetch, ctx: ctx, cancel: cancel}
	if before := c.common.source.Swap(source); before != nil {
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
		go s.ask() // fetch may wait, which the pump may not.
	})
	return status
}

func (s *credentialSource) ask() {
	var fetched Credentials
	err := errors.New("fetch has ended its goroutine")
	// Deferred: whatever fetch does, without an answer and a watch it would not be called again.
	defer s.repeat(s.watch)
	defer func() { s.repeat(func() Status { return s.give(fetched, err) }) }()
	fetched, err = s.fetch(s.ctx)
}

// repeat calls what until there is memory for it.
func (s *credentialSource) repeat(what func() Status) {
	for what() != OK {
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(noMemoryPause):
		}
	}
}

// give returns OK if the library has the answer, or no longer wants one.
func (s *credentialSource) give(fetched Credentials, err error) Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return OK
	}
	if err == nil {
		err = s.set(fetched)
	}
	if err == nil {
		return OK
	}
	// Sprint, as the method Error may be one that panics.
	status := Status(rlc.Client_credentials_fail(s.client, fmt.Sprint(err), 0))
	if status == ErrClosed {
		return OK
	}
	return status
}

func (s *credentialSource) set(fetched Credentials) error {
	if fetched.Valid < minValid {
		return fmt.Errorf("Valid must be %v or more, or NoEnd (got %v)", minValid, fetched.Valid)
	}
	valid := int64(-1)
	if fetched.Valid != NoEnd {
		valid = fetched.Valid.Milliseconds()
	}
	c := newCall("credentials", "")
	defer c.free()
	if rlc.Client_credentials_set(s.client, fetched.User, fetched.Password, valid,
		c.handle) == int(OK) {
		return nil
	}
	return c.failure()
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

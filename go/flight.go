// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"redlatch.io/redlatch/internal/rlc"
)

// SingleFlight returns the value of key. If it is not there, one caller, on any host, computes it
// with f; the others wait until ctx ends, and get its value. Each caller within ttl gets it, too,
// by the server's clock; the next one computes it again. The range of ttl is that of every ttl. A
// value is at most 64 KiB of any bytes; nil is an empty one.
//
// The caller that computes holds the lock of Lock of that key, and the context of f ends as that of
// Do, with ctx or the lease. If f returns an error or panics, the callers that wait get a
// *[SingleFlightError], and a later one computes. If the process dies, the lease is lost, or ctx
// has ended, the next caller that waits computes.
//
// The options are those of the acquisition; the option TTL is for the lease, not for the value.
// Goroutines of a client that wait for one key wait with the options of the first. Errors:
//
//   - *SingleFlightError: f of the caller that computed the value has failed.
//   - That of f, unchanged. ErrLost and ErrClosed are joined to it, as in Do; also if f returned a
//     value, which is dropped, because others may have another one.
//   - ErrInvalid: ttl, an option, or a value that is too long.
//   - ErrAlreadyHeld: the call has the context of an f of the same client and key, and would wait
//     for itself.
//   - ErrServer, ErrDenied: f did not run, or the server could not store the value.
//   - Those of Lock, if f did not run. ErrTimeout also if the value is still being computed.
func (c *Client) SingleFlight(ctx context.Context, key string, ttl time.Duration,
	f func(ctx context.Context) ([]byte, error), options ...Option) ([]byte, error) {
	defer runtime.KeepAlive(c)
	flight, err := c.newFlight(ctx, key, ttl)
	if err != nil {
		return nil, err
	}
	lease, value, err := flight.join(ctx, options)
	if lease == nil {
		return value, err
	}
	return flight.compute(ctx, lease, f)
}

// SingleFlightError is the error of a caller of SingleFlight that has waited for another one, whose
// f has failed, perhaps on another host. It has the texts of that error, and does not wrap it.
type SingleFlightError struct {
	Key  string
	Type string // of the error of f, such as "*fs.PathError"; at most 256 bytes
	Text string // its message; at most 1024 bytes
}

func (e *SingleFlightError) Error() string {
	return fmt.Sprintf("redlatch: %s %s: the caller that computed the value has failed: %s: %s",
		flightOp, quoted(e.Key), e.Type, e.Text)
}

const flightOp = "single-flight"

// flight has the arguments of one SingleFlight.
type flight struct {
	client *Client
	key    string
	ttlMs  int64
	outer  *flight // in whose f the call is; nil: none
	isOver atomic.Bool
}

type flightKey struct{}

func (c *Client) newFlight(ctx context.Context, key string, ttl time.Duration) (*flight, error) {
	made := &flight{client: c, key: key, ttlMs: wholeMs(ttl)}
	made.outer, _ = ctx.Value(flightKey{}).(*flight)
	if made.ttlMs < rlc.RL_MIN_TTL_MS || made.ttlMs > rlc.RL_MAX_TTL_MS {
		return nil, made.failure(ErrInvalid, fmt.Sprintf("ttl must be %d ms to %d days (got %v)",
			rlc.RL_MIN_TTL_MS, ms(rlc.RL_MAX_TTL_MS)/(24*time.Hour), ttl))
	}
	for around := made.outer; around != nil; around = around.outer {
		if around.client == c && around.key == key && !around.isOver.Load() {
			return nil, made.failure(ErrAlreadyHeld, "this call is inside the f that computes the value")
		}
	}
	return made, nil
}

func (f *flight) failure(status Status, message string) error {
	return &Error{Op: flightOp, Name: f.key, Status: status, Message: message}
}

// join returns the value; or a lease, and then this caller computes it.
func (f *flight) join(ctx context.Context, options []Option) (*Lease, []byte, error) {
	common := f.client.common
	request, err := common.granted(ctx, flightOp, f.key, waitMs(ctx), options, f.start)
	if err != nil {
		return nil, nil, err
	}
	defer common.free(request)
	if handle := rlc.Request_take_lease(request); handle != 0 {
		return newLease(ctx, common, f.client, handle), nil, nil
	}
	value, err := f.landed(request)
	return nil, value, err
}

func (f *flight) start(key string, wait int64, options rlc.AcquireOptions) rlc.Request {
	return rlc.Flight_start(f.client.handle, key, wait, options)
}

// landed returns what another caller has computed.
func (f *flight) landed(request rlc.Request) ([]byte, error) {
	length := rlc.Flight_value(request, nil)
	if length < 0 {
		return nil, f.failure(ErrNoMemory, "") // It has neither a value nor a lease.
	}
	value := make([]byte, length+1) // The library puts a NUL behind it.
	rlc.Flight_value(request, value)
	if rlc.Flight_has_failed(request) == 0 {
		return value[:length], nil
	}
	kind := text(func(buffer []byte) int64 { return rlc.Flight_failure_type(request, buffer) })
	return nil, &SingleFlightError{Key: f.key, Type: kind, Text: string(value[:length])}
}

// didNotReturn is the failure of an f that panics, or whose goroutine exits.
type didNotReturn struct{}

func (didNotReturn) Error() string { return "it did not return" }

func (f *flight) compute(ctx context.Context, lease *Lease,
	work func(ctx context.Context) ([]byte, error)) ([]byte, error) {
	var value []byte
	var failure error = didNotReturn{}
	err := lease.during(context.WithValue(ctx, flightKey{}, f), func(ctx context.Context) error {
		value, failure = work(ctx)
		if failure == nil && len(value) > rlc.RL_MAX_VALUE_BYTES {
			failure = f.failure(ErrInvalid, fmt.Sprintf("value must be at most %d bytes (got %d)",
				rlc.RL_MAX_VALUE_BYTES, len(value)))
		}
		return failure
	}, func(hasSucceeded bool) error {
		f.isOver.Store(true)
		switch {
		case hasSucceeded:
			return f.store(ctx, lease, value)
		case ctx.Err() != nil:
			return lease.unlockAfterWork(ctx)
		}
		return f.tell(ctx, lease, failure)
	})
	if err != nil {
		return nil, err
	}
	return value, nil
}

// store stores the value and releases the lease, in one step.
func (f *flight) store(ctx context.Context, lease *Lease, value []byte) error {
	return lease.finishAfterWork(ctx, flightOp, func(handle rlc.Lease) rlc.Request {
		return rlc.Flight_store_start(handle, string(value), f.ttlMs)
	})
}

// tell reports a failure to the callers that wait, and releases the lease, in one step.
func (f *flight) tell(ctx context.Context, lease *Lease, failure error) error {
	kind, said := fmt.Sprintf("%T", failure), fmt.Sprint(failure)
	err := lease.finishAfterWork(ctx, flightOp, func(handle rlc.Lease) rlc.Request {
		return rlc.Flight_fail_start(handle, kind, said)
	})
	if err != nil && goesOn(statusOf(err)) {
		return nil // The callers wait for the end of the lease instead.
	}
	return err
}

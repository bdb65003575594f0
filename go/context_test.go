// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"redlatch.io/redlatch"
)

var errWentAway = errors.New("the user went away")

func saysBoth(t *testing.T, err, end error) {
	t.Helper()
	is(t, errors.Is(err, end) && errors.Is(err, errWentAway), "%v", err)
	is(t, strings.Count(err.Error(), errWentAway.Error()) == 1, "%v", err)
}

// What frameworks look for is context.Canceled, and what their users gave is the cause.
func TestErrorOfACancelMatchesCanceledAndTheCause(t *testing.T) {
	client := startServer(t).client()
	held, err := client.Lock(background, "x")
	must(t, err)
	ctx, cancel := context.WithCancelCause(background)
	waiting := make(chan error)
	go func() {
		_, err := client.Lock(ctx, "x")
		waiting <- err
	}()
	watching := make(chan error)
	go func() { watching <- held.WaitLost(ctx) }()
	eventually(t, func() bool {
		info, err := client.Inspect(background, "x")
		return err == nil && info.Waiting == 1
	})
	cancel(errWentAway)
	err = <-waiting
	saysBoth(t, err, context.Canceled)
	is(t, errors.Is(err, redlatch.ErrCancelled), "%v", err)
	saysBoth(t, <-watching, context.Canceled)
	_, err = client.Lock(ctx, "x")
	saysBoth(t, err, context.Canceled)
	_, err = client.Inspect(ctx, "x")
	saysBoth(t, err, context.Canceled)
	saysBoth(t, client.ForceReleaseAny(ctx, "x"), context.Canceled)
	saysBoth(t, client.Connect(ctx), context.Canceled)
	saysBoth(t, held.Extend(ctx, time.Minute), context.Canceled)
	must(t, held.Unlock(background))
}

func TestErrorOfADeadlineMatchesDeadlineExceededAndTheCause(t *testing.T) {
	client := startServer(t).client()
	held, err := client.Lock(background, "x")
	must(t, err)
	ctx, cancel := context.WithTimeoutCause(background, 50*time.Millisecond, errWentAway)
	defer cancel()
	_, err = client.Lock(ctx, "x")
	saysBoth(t, err, context.DeadlineExceeded)
	is(t, errors.Is(err, redlatch.ErrTimeout), "%v", err)
	must(t, held.Unlock(background))
}

func TestNamesAreQuotedAndCutInErrors(t *testing.T) {
	client := startServer(t).client()
	ctx, cancel := context.WithCancel(background)
	cancel()
	for name, shown := range map[string]string{
		"a":                      "'a'",
		"it's\n\xff":             `'it\x27s\x0a\xff'`,
		strings.Repeat("x", 100): "'" + strings.Repeat("x", 64) + "'..",
	} {
		_, err := client.Lock(ctx, name)
		is(t, strings.HasPrefix(err.Error(), "redlatch: lock "+shown+": "), "%v", err)
		_, err = client.Attach(background, name, strings.Repeat("0", 32))
		is(t, strings.Count(err.Error(), shown) == 1, "%v", err)
	}
}

func TestDoNamesALossOnce(t *testing.T) {
	client := startServer(t).client()
	err := client.Do(background, "x", func(ctx context.Context) error {
		must(t, client.ForceReleaseAny(background, "x"))
		<-ctx.Done()
		return context.Cause(ctx)
	}, redlatch.TTL(lossTTL))
	is(t, errors.Is(err, redlatch.ErrLost), "%v", err)
	is(t, strings.Count(err.Error(), "'x'") == 1, "%v", err)
	// The loss of another lock says nothing about this one.
	err = client.Do(background, "x", func(ctx context.Context) error {
		must(t, client.ForceReleaseAny(background, "x"))
		return &redlatch.Error{Op: "hold", Name: "y", Status: redlatch.ErrLost}
	})
	is(t, strings.Contains(err.Error(), "'x'") && strings.Contains(err.Error(), "'y'"), "%v", err)
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"redlatch.io/redlatch"
)

func ended() context.Context {
	ctx, cancel := context.WithCancel(background)
	cancel()
	return ctx
}

func TestUnlockOfALostLockerDoesNotReleaseTheNextHolder(t *testing.T) {
	client := startServer(t).client()
	locker := client.Locker("x")
	locker.Lock()
	lost := locker.Lease()
	must(t, client.ForceReleaseAny(background, "x"))
	entered := make(chan *redlatch.Lease)
	go func() {
		locker.Lock()
		entered <- locker.Lease()
	}()
	locker.Unlock()
	next := <-entered
	is(t, next != lost && next.Check() == nil, "%v", next.Check())
	locker.Unlock()
}

func TestDoSucceedsEvenIfTheReleaseIsUnanswered(t *testing.T) {
	server := startServer(t)
	err := server.client().Do(background, "x", func(context.Context) error {
		server.stop()
		return nil
	})
	server.resume()
	must(t, err)
	eventually(t, func() bool { return server.ask("EXISTS", "x") == ":0" })
}

func TestUnlockWithAnEndedContextReportsALoss(t *testing.T) {
	const tries = 20
	client := startServer(t).client()
	lost := 0
	for i := 0; i < tries; i++ {
		lease, err := client.Lock(background, "x")
		must(t, err)
		must(t, client.ForceReleaseAny(background, "x"))
		err = lease.Unlock(ended())
		if errors.Is(err, redlatch.ErrLost) && !errors.Is(err, context.Canceled) {
			lost++
			continue
		}
		is(t, errors.Is(err, redlatch.ErrOutcomeUnknown), "%v", err)
	}
	// On a busy machine some answers come too late.
	is(t, lost > tries/2, "%d of %d losses were returned", lost, tries)
}

func TestAnEndedContextSendsNothingExceptAnUnlock(t *testing.T) {
	client := startServer(t).client()
	lease, err := client.Lock(background, "x")
	must(t, err)
	for i := 0; i < 20; i++ {
		err := client.ForceReleaseAny(ended(), "x")
		is(t, errors.Is(err, context.Canceled), "%v", err)
		err = lease.Extend(ended(), time.Minute)
		is(t, errors.Is(err, context.Canceled), "%v", err)
	}
	must(t, lease.Check())
	must(t, lease.Unlock(background))
}

func TestAnUnansweredUnlockIsAnUnknownOutcome(t *testing.T) {
	server := startServer(t)
	client := server.client()
	lease, err := client.Lock(background, "x")
	must(t, err)
	server.stop()
	ctx, cancel := context.WithTimeout(background, 50*time.Millisecond)
	defer cancel()
	err = lease.Unlock(ctx)
	is(t, errors.Is(err, redlatch.ErrOutcomeUnknown), "%v", err)
	is(t, errors.Is(err, context.DeadlineExceeded), "%v", err)
	server.resume()
	eventually(t, func() bool { return server.ask("EXISTS", "x") == ":0" })
}

func TestDurationsBelowAMillisecondAreNotTakenAsNoLimit(t *testing.T) {
	client := startServer(t).client()
	lease, err := client.Lock(background, "x", redlatch.MaxHold(900*time.Microsecond))
	if err == nil {
		err = lease.WaitLost(background)
	}
	is(t, err != nil, "it ends at once, or is refused")
	lease, err = client.Lock(background, "y")
	must(t, err)
	err = lease.Extend(background, 30)
	is(t, errors.Is(err, redlatch.ErrInvalid) && strings.HasSuffix(err.Error(),
		"ttl must be at least 10 ms (got 30ns)"), "%v", err)
	must(t, lease.Check())
}

func TestMessagesNameTheLockOnce(t *testing.T) {
	client := startServer(t).client()
	_, err := client.Lock(ended(), "a")
	is(t, err.Error() == `redlatch: lock 'a': the request was cancelled: context canceled`, "%v", err)
	// The holder is another thread: if it were the one that waits, the message would say that.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	held, err := client.Lock(background, "a")
	must(t, err)
	ctx, cancel := context.WithTimeout(background, time.Second)
	defer cancel()
	failed := make(chan error)
	go func() {
		_, err := client.Lock(ctx, "a")
		failed <- err
	}()
	err = <-failed
	is(t, strings.HasPrefix(err.Error(), "redlatch: lock: lock 'a' was not granted within ") &&
		strings.HasSuffix(err.Error(), " s; holder: this client: context deadline exceeded"), "%v", err)
	must(t, held.Unlock(background))
}

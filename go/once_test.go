// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlatch.io/redlatch"
)

var errOfTheJob = errors.New("of the job")

type onceFunc = func(context.Context, *redlatch.Lease) error

func succeeds(context.Context, *redlatch.Lease) error { return nil }

func fails(context.Context, *redlatch.Lease) error { return errOfTheJob }

// once is a run of the job x that has a result.
func once(client *redlatch.Client, f onceFunc, options ...redlatch.OnceOption) error {
	return client.Once(background, "x", time.Hour, f, options...)
}

func isSkipped(t testing.TB, client *redlatch.Client, says string, options ...redlatch.OnceOption) {
	t.Helper()
	err := once(client, func(context.Context, *redlatch.Lease) error {
		t.Error("it runs")
		return nil
	}, options...)
	is(t, errors.Is(err, redlatch.ErrSkipped) && strings.Contains(err.Error(), says), "%v", err)
}

func marksOf(t testing.TB, client *redlatch.Client) []redlatch.Mark {
	t.Helper()
	info, err := client.Inspect(background, "x")
	must(t, err)
	return info.Marks
}

// theMark is of the one period that is remembered.
func theMark(t testing.TB, client *redlatch.Client) redlatch.Mark {
	t.Helper()
	marks := marksOf(t, client)
	is(t, len(marks) == 1, "%+v", marks)
	return marks[0]
}

// hasFailed checks the one run so far, and that its lock is free.
func hasFailed(t testing.TB, client *redlatch.Client, server *server) {
	t.Helper()
	mark := theMark(t, client)
	is(t, !mark.IsDone() && mark.Tries == 1, "%+v", mark)
	is(t, server.ask("EXISTS", "x") == ":0", "the lock is held")
}

func eventuallyWaits(t testing.TB, client *redlatch.Client, count int64) {
	t.Helper()
	eventually(t, func() bool {
		info, err := client.Inspect(background, "x")
		return err == nil && info.Waiting == count
	})
}

func TestASuccessIsRememberedForMostOfThePeriod(t *testing.T) {
	server := startServer(t)
	client := server.client()
	must(t, once(client, func(ctx context.Context, lease *redlatch.Lease) error {
		is(t, lease.Check() == nil && redlatch.LeaseOf(ctx) == lease, "f has its lease")
		is(t, !theMark(t, client).IsDone(), "it is under way")
		return nil
	}))
	is(t, server.ask("EXISTS", "x") == ":0", "the lock is held")
	mark := theMark(t, client)
	is(t, mark.IsDone() && mark.Tries == 1 && mark.Key == "" && !mark.Since.IsZero(), "%+v", mark)
	is(t, mark.Remaining <= 54*time.Minute && mark.Remaining > 50*time.Minute, "%+v", mark)
	isSkipped(t, client, "has succeeded")
	isSkipped(t, server.client(), "has succeeded")
}

func TestASuccessIsForgottenAfter90Percent(t *testing.T) {
	const every, clocksDiffer = 400 * time.Millisecond, 5 * time.Millisecond
	client := startServer(t).client()
	begun := time.Now()
	must(t, client.Once(background, "x", every, succeeds))
	var again time.Time
	eventually(t, func() bool {
		err := client.Once(background, "x", every, func(context.Context, *redlatch.Lease) error {
			again = time.Now()
			return nil
		})
		is(t, err == nil || errors.Is(err, redlatch.ErrSkipped), "%v", err)
		return err == nil
	})
	is(t, again.Sub(begun) >= every*9/10-clocksDiffer, "%v", again.Sub(begun))
}

func TestAFailureLeavesATry(t *testing.T) {
	server := startServer(t)
	client := server.client()
	err := once(client, fails)
	is(t, err == errOfTheJob, "%v", err)
	hasFailed(t, client, server)
	must(t, once(client, succeeds))
	mark := theMark(t, client)
	is(t, mark.IsDone() && mark.Tries == 2, "%+v", mark)
	isSkipped(t, client, "has succeeded")
}

func TestTriesAreUsedUp(t *testing.T) {
	client := startServer(t).client()
	for i := 0; i < 3; i++ {
		is(t, once(client, fails) == errOfTheJob, "run %d", i)
	}
	isSkipped(t, client, "tries")
	is(t, once(client, fails, redlatch.Tries(4)) == errOfTheJob, "one more")
	isSkipped(t, client, "tries", redlatch.Tries(4))
	must(t, once(client, succeeds, redlatch.Tries(5)))
}

func TestAKeyNamesThePeriod(t *testing.T) {
	client := startServer(t).client()
	monday, tuesday := redlatch.Key("monday"), redlatch.Key("tuesday\x00\xff")
	must(t, once(client, succeeds, monday, redlatch.TTL(time.Minute)))
	mark := theMark(t, client)
	is(t, mark.Key == "monday" && mark.IsDone() && mark.Remaining > 54*time.Minute, "%+v", mark)
	must(t, once(client, succeeds, tuesday))
	must(t, once(client, succeeds))
	isSkipped(t, client, "has succeeded", monday)
	isSkipped(t, client, "has succeeded", tuesday)
	isSkipped(t, client, "has succeeded")
	is(t, len(marksOf(t, client)) == 3, "%+v", marksOf(t, client))
}

func TestOneOf64GoroutinesRuns(t *testing.T) {
	const goroutines = 64
	server := startServer(t)
	clients := []*redlatch.Client{server.client(), server.client()}
	var runs, skipped atomic.Int64
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := 0; i < goroutines; i++ {
		all.Add(1)
		client := clients[i%2]
		go func() {
			defer all.Done()
			<-start
			err := once(client, func(context.Context, *redlatch.Lease) error {
				runs.Add(1)
				// All of them wait now, or come later.
				eventuallyWaits(t, client, goroutines-1)
				return nil
			})
			switch {
			case errors.Is(err, redlatch.ErrSkipped):
				skipped.Add(1)
			case err != nil:
				t.Error(err)
			}
		}()
	}
	close(start)
	all.Wait()
	is(t, runs.Load() == 1 && skipped.Load() == goroutines-1, "%d, %d", runs.Load(), skipped.Load())
	haveGone(t, server, "x", "{x}:rl1:q")
}

func TestEachCallerOfAClientHasItsOwnTry(t *testing.T) {
	const goroutines = 8
	client := startServer(t).client()
	var failed atomic.Int64
	var all sync.WaitGroup
	for i := 0; i < goroutines; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			switch err := once(client, fails, redlatch.Tries(5), redlatch.MaxLocalHandoffs(31)); {
			case err == errOfTheJob:
				failed.Add(1)
			case !errors.Is(err, redlatch.ErrSkipped):
				t.Error(err)
			}
		}()
	}
	all.Wait()
	is(t, failed.Load() == 5 && theMark(t, client).Tries == 5, "%d", failed.Load())
}

// runsUntil begins a run that ends with the result of f, which gets its context.
func runsUntil(client *redlatch.Client, ctx context.Context, f func(context.Context) error,
	options ...redlatch.OnceOption) <-chan error {
	inside, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- client.Once(ctx, "x", time.Hour, func(ctx context.Context, _ *redlatch.Lease) error {
			close(inside)
			return f(ctx)
		}, options...)
	}()
	<-inside
	return done
}

func untilEnd(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestACancelledWaitDoesNotDisturbTheRun(t *testing.T) {
	server := startServer(t)
	client := server.client()
	finish := make(chan struct{})
	running := runsUntil(client, background, func(context.Context) error {
		<-finish
		return nil
	})
	ctx, cancel := context.WithCancelCause(background)
	waiting := make(chan error)
	go func() { waiting <- server.client().Once(ctx, "x", time.Hour, succeeds) }()
	eventuallyWaits(t, client, 1)
	cancel(errWentAway)
	err := <-waiting
	saysBoth(t, err, context.Canceled)
	is(t, !errors.Is(err, redlatch.ErrSkipped) && strings.Contains(err.Error(), "once"), "%v", err)
	close(finish)
	must(t, <-running)
	is(t, theMark(t, client).Tries == 1, "%+v", theMark(t, client))
	saysBoth(t, client.Once(ctx, "x", time.Hour, succeeds), context.Canceled)
}

func TestACancelEndsTheContextOfARun(t *testing.T) {
	server := startServer(t)
	client := server.client()
	ctx, cancel := context.WithCancelCause(background)
	running := runsUntil(client, ctx, untilEnd)
	cancel(errWentAway)
	err := <-running
	is(t, err == errWentAway, "%v", err)
	hasFailed(t, client, server)

	// A run that succeeds although it was cancelled has succeeded.
	ctx, cancel = context.WithCancelCause(background)
	running = runsUntil(client, ctx, func(ctx context.Context) error {
		_ = untilEnd(ctx)
		return nil
	})
	cancel(errWentAway)
	must(t, <-running)
	is(t, theMark(t, client).IsDone(), "%+v", theMark(t, client))
}

func TestARunThatPanicsHasFailed(t *testing.T) {
	server := startServer(t)
	client := server.client()
	func() {
		defer func() { is(t, recover() == "stop", "it panics on") }()
		_ = once(client, func(context.Context, *redlatch.Lease) error { panic("stop") })
	}()
	hasFailed(t, client, server)
}

func TestARunWhoseGoroutineExitsHasFailed(t *testing.T) {
	server := startServer(t)
	client := server.client()
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = once(client, func(context.Context, *redlatch.Lease) error {
			runtime.Goexit()
			return nil
		})
	}()
	<-exited
	hasFailed(t, client, server)
}

func TestABusyJobIsSkippedIfAsked(t *testing.T) {
	server := startServer(t)
	client := server.client()
	finish := make(chan struct{})
	running := runsUntil(client, background, func(context.Context) error {
		<-finish
		return errOfTheJob
	})
	isSkipped(t, client, "busy", redlatch.SkipIfBusy())
	isSkipped(t, server.client(), "busy", redlatch.SkipIfBusy())
	close(finish)
	is(t, <-running == errOfTheJob, "its own failure")
	must(t, once(client, succeeds, redlatch.SkipIfBusy()))
	isSkipped(t, client, "has succeeded", redlatch.SkipIfBusy())

	server.kill()
	eventually(t, func() bool {
		err := once(client, succeeds, redlatch.SkipIfBusy())
		return errors.Is(err, redlatch.ErrUnavailable) && !errors.Is(err, redlatch.ErrSkipped)
	})
}

func TestARunThatLosesItsLeaseHasFailed(t *testing.T) {
	for _, one := range []struct {
		name   string
		result func(cause error) error
	}{
		{"of the loss", func(cause error) error { return cause }},
		{"of the job", func(error) error { return errOfTheJob }},
		{"none", func(error) error { return nil }},
	} {
		t.Run(one.name, func(t *testing.T) {
			server := startServer(t)
			client := server.client()
			var failure error
			running := runsUntil(client, background, func(ctx context.Context) error {
				failure = one.result(untilEnd(ctx))
				return failure
			}, redlatch.TTL(lossTTL))
			must(t, client.ForceReleaseAny(background, "x"))
			err := <-running
			is(t, errors.Is(err, redlatch.ErrLost), "%v", err)
			is(t, failure == nil || errors.Is(err, failure), "%v", err)
			is(t, strings.Count(err.Error(), "'x'") == 1, "%v", err)
			hasFailed(t, client, server)
			must(t, once(client, succeeds))
		})
	}
}

func TestALossThatTheRunDidNotSeeIsNoSuccess(t *testing.T) {
	server := startServer(t)
	client := server.client()
	err := once(client, func(ctx context.Context, lease *redlatch.Lease) error {
		must(t, client.ForceReleaseAny(background, "x"))
		return lease.Check()
	})
	is(t, errors.Is(err, redlatch.ErrLost), "%v", err)
	hasFailed(t, client, server)
}

func TestARunThatUnlocksItsLeaseHasFailed(t *testing.T) {
	server := startServer(t)
	client := server.client()
	err := once(client, func(ctx context.Context, lease *redlatch.Lease) error {
		return lease.Unlock(ctx)
	})
	is(t, errors.Is(err, redlatch.ErrNotHeld), "%v", err)
	hasFailed(t, client, server)
}

func TestARunIsRenewed(t *testing.T) {
	const ttl = 300 * time.Millisecond
	client := startServer(t).client()
	must(t, once(client, func(ctx context.Context, lease *redlatch.Lease) error {
		first := time.Now().Add(lease.Remaining())
		eventually(t, func() bool { return time.Now().After(first) })
		return lease.Check()
	}, redlatch.TTL(ttl)))
	is(t, theMark(t, client).IsDone(), "%+v", theMark(t, client))
}

func TestASuccessIsNotedEvenIfTheAnswerIsLate(t *testing.T) {
	server := startServer(t)
	client := server.client()
	err := once(client, func(context.Context, *redlatch.Lease) error {
		server.stop()
		return nil
	})
	server.resume()
	must(t, err)
	eventually(t, func() bool { return theMark(t, client).IsDone() })
}

func TestAServerThatCannotNoteASuccessIsAnError(t *testing.T) {
	server := startServer(t)
	client := server.client()
	err := once(client, func(context.Context, *redlatch.Lease) error {
		is(t, server.ask("ACL", "SETUSER", "default", "-hset") == "+OK", "no ACL")
		return nil
	})
	is(t, server.ask("ACL", "SETUSER", "default", "+hset") == "+OK", "no ACL")
	is(t, errors.Is(err, redlatch.ErrServer), "%v", err)
	hasFailed(t, client, server)
}

func TestForgottenRunsDoNotCount(t *testing.T) {
	server := startServer(t)
	client := server.client()
	must(t, client.OnceForget(background, "x")) // There are none.
	must(t, once(client, succeeds))
	must(t, once(client, succeeds, redlatch.Key("monday")))
	must(t, client.OnceForget(background, "x"))
	is(t, len(marksOf(t, client)) == 0, "%+v", marksOf(t, client))
	must(t, once(client, func(context.Context, *redlatch.Lease) error {
		return client.OnceForget(background, "x")
	}))
	is(t, len(marksOf(t, client)) == 0, "a run that was under way")
	err := client.OnceForget(background, "")
	is(t, errors.Is(err, redlatch.ErrInvalid), "%v", err)
	is(t, strings.HasPrefix(err.Error(), "redlatch: once-forget"), "%v", err)
	saysBoth(t, client.OnceForget(wentAway(), "x"), context.Canceled)
}

func wentAway() context.Context {
	ctx, cancel := context.WithCancelCause(background)
	cancel(errWentAway)
	return ctx
}

func TestErrorsNameInvalidArgumentsOfOnce(t *testing.T) {
	server := startServer(t)
	client := server.client()
	for _, one := range []struct {
		every  time.Duration
		says   string
		option redlatch.OnceOption
	}{
		{99 * time.Millisecond, "every", redlatch.Tries(1)},
		{-time.Hour, "every", redlatch.Tries(1)},
		{367 * 24 * time.Hour, "every", redlatch.Tries(1)},
		{time.Hour, "tries must be 1 to 1000 (got 0)", redlatch.Tries(0)},
		{time.Hour, "tries must be 1 to 1000 (got 1001)", redlatch.Tries(1001)},
		{time.Hour, "key must be at most 256 bytes (got 257", redlatch.Key(strings.Repeat("k", 257))},
		{time.Hour, "'ttl' must be", redlatch.TTL(time.Millisecond)},
		{time.Hour, "reentrant", redlatch.AsReentrant()},
		{time.Hour, "format", redlatch.InFormat(redlatch.FormatHashRW)},
		{time.Hour, "mutex", redlatch.Set("limit", "2")},
		{time.Hour, "option 2 must not be nil", nil},
		{time.Hour, "option 2 must not be nil", redlatch.Option(nil)},
	} {
		err := client.Once(background, "x", one.every, func(context.Context, *redlatch.Lease) error {
			t.Error("it runs")
			return nil
		}, redlatch.Key(""), one.option)
		is(t, errors.Is(err, redlatch.ErrInvalid) && strings.Contains(err.Error(), one.says), "%v", err)
		is(t, strings.HasPrefix(err.Error(), "redlatch: once"), "%v", err)
		is(t, server.ask("EXISTS", "x") == ":0", "the lock is held")
	}
	is(t, len(marksOf(t, client)) == 0, "%+v", marksOf(t, client))
}

func TestARedlockHasNoOnce(t *testing.T) {
	redlock, err := redlatch.OpenRedlock([]string{"unix:///a", "unix:///b", "unix:///c"})
	must(t, err)
	defer redlock.Close()
	_, hasOnce := any(redlock).(interface {
		OnceForget(context.Context, string) error
	})
	is(t, !hasOnce, "its servers cannot remember a run together")
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlatch.io/redlatch"
)

// computesAt is set for a process of the tests that computes a value of that server until it dies.
const computesAt = "REDLATCH_TEST_COMPUTES_AT"

var errOfTheFlight = errors.New("of the flight")

type flightFunc = func(context.Context) ([]byte, error)

func gives(value string) flightFunc {
	return func(context.Context) ([]byte, error) { return []byte(value), nil }
}

func refuses(context.Context) ([]byte, error) { return nil, errOfTheFlight }

// fly asks for the value x, which is kept for an hour.
func fly(client *redlatch.Client, f flightFunc, options ...redlatch.Option) (string, error) {
	value, err := client.SingleFlight(background, "x", time.Hour, f, options...)
	return string(value), err
}

func hasValue(t testing.TB, client *redlatch.Client, value string) {
	t.Helper()
	found, err := fly(client, func(context.Context) ([]byte, error) {
		t.Error("it computes")
		return nil, nil
	})
	is(t, err == nil && found == value, "%q, %v", found, err)
}

// hasNoValue stores one.
func hasNoValue(t testing.TB, server *server) {
	t.Helper()
	is(t, server.ask("EXISTS", "x") == ":0", "the lock is held")
	found, err := fly(server.client(), gives("next"))
	is(t, err == nil && found == "next", "%q, %v", found, err)
}

type landing struct {
	value string
	err   error
}

// computesUntil begins a flight whose value comes from f.
func computesUntil(ctx context.Context, client *redlatch.Client, f flightFunc,
	options ...redlatch.Option) <-chan landing {
	inside, done := make(chan struct{}), make(chan landing, 1)
	go func() {
		value, err := client.SingleFlight(ctx, "x", time.Hour,
			func(ctx context.Context) ([]byte, error) {
				close(inside)
				return f(ctx)
			}, options...)
		done <- landing{string(value), err}
	}()
	<-inside
	return done
}

// waitsFor begins a flight that waits for that of another client, as the waiter with this number.
func waitsFor(t testing.TB, ctx context.Context, client *redlatch.Client, number int64,
	f flightFunc) <-chan landing {
	t.Helper()
	done := make(chan landing, 1)
	go func() {
		value, err := client.SingleFlight(ctx, "x", time.Hour, f)
		done <- landing{string(value), err}
	}()
	eventuallyWaits(t, client, number)
	return done
}

func isComputedTwice(context.Context) ([]byte, error) { panic("it is computed twice") }

func TestOneOf64GoroutinesComputes(t *testing.T) {
	const goroutines = 64
	server := startServer(t)
	clients := []*redlatch.Client{server.client(), server.client()}
	var computed, same atomic.Int64
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := 0; i < goroutines; i++ {
		all.Add(1)
		client := clients[i%2]
		go func() {
			defer all.Done()
			<-start
			value, err := fly(client, func(context.Context) ([]byte, error) {
				// A place for each client.
				eventuallyWaits(t, client, int64(len(clients)))
				return []byte(fmt.Sprint("number ", computed.Add(1))), nil
			})
			if err != nil {
				t.Error(err)
			} else if value == "number 1" {
				same.Add(1)
			}
		}()
	}
	close(start)
	all.Wait()
	is(t, computed.Load() == 1 && same.Load() == goroutines, "%d, %d", computed.Load(), same.Load())
	haveGone(t, server, "x", "{x}:rl1:q")
	hasValue(t, server.client(), "number 1")
}

func TestAValueIsComputedAgainAfterItsTTL(t *testing.T) {
	const ttl, clocksDiffer = 400 * time.Millisecond, 5 * time.Millisecond
	client := startServer(t).client()
	count := 0
	next := func(context.Context) ([]byte, error) {
		count++
		return []byte(fmt.Sprint(count)), nil
	}
	begun := time.Now()
	eventually(t, func() bool {
		value, err := client.SingleFlight(background, "x", ttl, next)
		is(t, err == nil && string(value) == fmt.Sprint(count), "%q, %v", value, err)
		return count == 2
	})
	is(t, time.Since(begun) >= ttl-clocksDiffer, "%v", time.Since(begun))
}

func TestAValueIsAnyBytes(t *testing.T) {
	client := startServer(t).client()
	long := strings.Repeat("\x00\xff\r\n", 16384)
	for key, value := range map[string][]byte{
		"a": []byte("\x00a\xff\n"), "b": {}, "c": nil, "d": []byte(long), "\x00\xff": []byte("e"),
	} {
		for _, f := range []flightFunc{gives(string(value)), isComputedTwice} {
			found, err := client.SingleFlight(background, key, time.Hour, f)
			is(t, err == nil && found != nil && string(found) == string(value), "%q: %v", key, err)
		}
	}
}

func TestAValueThatIsTooLongIsNotStored(t *testing.T) {
	server := startServer(t)
	computing := server.client()
	finish := make(chan struct{})
	landed := computesUntil(background, computing, func(context.Context) ([]byte, error) {
		<-finish
		return make([]byte, 65537), nil
	})
	waiting := waitsFor(t, background, server.client(), 1, isComputedTwice)
	close(finish)
	const says = "value must be at most 65536 bytes (got 65537)"
	own, other := <-landed, <-waiting
	is(t, own.value == "" && errors.Is(own.err, redlatch.ErrInvalid), "%v", own.err)
	is(t, strings.HasPrefix(own.err.Error(), "redlatch: single-flight 'x': "+says), "%v", own.err)
	hasSeen(t, other.err, "*redlatch.Error", own.err.Error())
	hasNoValue(t, server)
}

// hasSeen checks the result of a caller that waited.
func hasSeen(t testing.TB, err error, kind, text string) {
	t.Helper()
	var failure *redlatch.SingleFlightError
	is(t, errors.As(err, &failure), "%v", err)
	is(t, failure.Key == "x" && failure.Type == kind && failure.Text == text, "%#v", failure)
	is(t, strings.Contains(err.Error(), "single-flight 'x'"), "%v", err)
	is(t, strings.Contains(err.Error(), text), "%v", err)
}

func TestAFailureReachesThoseThatWaitAndNobodyLater(t *testing.T) {
	server := startServer(t)
	finish := make(chan struct{})
	landed := computesUntil(background, server.client(), func(context.Context) ([]byte, error) {
		<-finish
		return []byte("of no use"), errOfTheFlight
	})
	first := waitsFor(t, background, server.client(), 1, isComputedTwice)
	second := waitsFor(t, background, server.client(), 2, isComputedTwice)
	close(finish)
	own := <-landed
	is(t, own.value == "" && own.err == errOfTheFlight, "%q, %v", own.value, own.err)
	for _, waiting := range []<-chan landing{first, second} {
		hasSeen(t, (<-waiting).err, "*errors.errorString", "of the flight")
	}
	hasNoValue(t, server)
}

func TestAFlightThatDoesNotReturnHasFailed(t *testing.T) {
	for _, one := range []struct {
		name string
		end  func()
	}{
		{"a panic", func() { panic("stop") }},
		{"an exit", runtime.Goexit},
	} {
		t.Run(one.name, func(t *testing.T) {
			server := startServer(t)
			client := server.client()
			inside, finish := make(chan struct{}), make(chan struct{})
			ended := make(chan any, 1)
			go func() {
				defer func() { ended <- recover() }()
				_, _ = fly(client, func(context.Context) ([]byte, error) {
					close(inside)
					<-finish
					one.end()
					return nil, nil
				})
			}()
			<-inside
			waiting := waitsFor(t, background, server.client(), 1, isComputedTwice)
			close(finish)
			cause := <-ended
			is(t, one.name == "an exit" || cause == "stop", "%v", cause)
			hasSeen(t, (<-waiting).err, "redlatch.didNotReturn", "it did not return")
			hasNoValue(t, server)
		})
	}
}

func TestAFlightInsideItselfIsRefused(t *testing.T) {
	server := startServer(t)
	client, other := server.client(), server.client()
	isRefused := func(ctx context.Context) {
		_, err := client.SingleFlight(ctx, "x", time.Hour, isComputedTwice)
		is(t, errors.Is(err, redlatch.ErrAlreadyHeld), "%v", err)
		is(t, strings.HasPrefix(err.Error(), "redlatch: single-flight 'x'"), "%v", err)
	}
	var kept context.Context
	value, err := fly(client, func(ctx context.Context) ([]byte, error) {
		kept = context.WithoutCancel(ctx)
		isRefused(ctx)
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		_, err := other.SingleFlight(short, "x", time.Hour, isComputedTwice)
		is(t, errors.Is(err, redlatch.ErrTimeout), "another client waits: %v", err)
		return client.SingleFlight(ctx, "y", time.Hour, func(ctx context.Context) ([]byte, error) {
			isRefused(ctx)
			return []byte("of y"), nil
		})
	})
	is(t, err == nil && value == "of y", "%q, %v", value, err)
	again, err := client.SingleFlight(kept, "x", time.Hour, isComputedTwice)
	is(t, err == nil && string(again) == "of y", "it is over: %q, %v", again, err)
}

func TestAWaitThatIsOverComputesNothing(t *testing.T) {
	server := startServer(t)
	client := server.client()
	finish := make(chan struct{})
	landed := computesUntil(background, client, func(context.Context) ([]byte, error) {
		<-finish
		return []byte("mine"), nil
	})
	for _, impatient := range []*redlatch.Client{client, server.client()} {
		ctx, cancel := context.WithTimeout(background, 50*time.Millisecond)
		_, err := impatient.SingleFlight(ctx, "x", time.Hour, isComputedTwice)
		cancel()
		is(t, errors.Is(err, redlatch.ErrTimeout) && errors.Is(err, redlatch.ErrBusy), "%v", err)
		is(t, errors.Is(err, context.DeadlineExceeded), "%v", err)
	}
	close(finish)
	own := <-landed
	is(t, own.err == nil && own.value == "mine", "%v", own.err)
}

func TestACancelledWaitDisturbsNoFlight(t *testing.T) {
	server := startServer(t)
	finish := make(chan struct{})
	landed := computesUntil(background, server.client(), func(context.Context) ([]byte, error) {
		<-finish
		return []byte("mine"), nil
	})
	// The second shares the place of the first one, which goes away.
	client := server.client()
	ctx, cancel := context.WithCancelCause(background)
	first := waitsFor(t, ctx, client, 1, isComputedTwice)
	second := waitsFor(t, background, client, 1, isComputedTwice)
	third := waitsFor(t, background, server.client(), 2, isComputedTwice)
	cancel(errWentAway)
	err := (<-first).err
	saysBoth(t, err, context.Canceled)
	is(t, errors.Is(err, redlatch.ErrCancelled), "%v", err)
	eventuallyWaits(t, client, 2)
	close(finish)
	for _, one := range []<-chan landing{landed, second, third} {
		got := <-one
		is(t, got.err == nil && got.value == "mine", "%q, %v", got.value, got.err)
	}
	_, err = client.SingleFlight(ctx, "x", time.Hour, isComputedTwice)
	saysBoth(t, err, context.Canceled)
}

func TestTheNextComputesAfterACancel(t *testing.T) {
	server := startServer(t)
	ctx, cancel := context.WithCancelCause(background)
	landed := computesUntil(ctx, server.client(), func(ctx context.Context) ([]byte, error) {
		return nil, untilEnd(ctx)
	})
	waiting := waitsFor(t, background, server.client(), 1, gives("of the next"))
	cancel(errWentAway)
	own, next := <-landed, <-waiting
	is(t, own.err == errWentAway, "%v", own.err)
	is(t, next.err == nil && next.value == "of the next", "%q, %v", next.value, next.err)
}

func TestACancelledFlightThatHasAValueStoresIt(t *testing.T) {
	server := startServer(t)
	ctx, cancel := context.WithCancelCause(background)
	landed := computesUntil(ctx, server.client(), func(ctx context.Context) ([]byte, error) {
		_ = untilEnd(ctx)
		return []byte("mine"), nil
	})
	cancel(errWentAway)
	own := <-landed
	is(t, own.err == nil && own.value == "mine", "%q, %v", own.value, own.err)
	hasValue(t, server.client(), "mine")
}

// computeForever reports when it computes.
func computeForever(url string) {
	client, err := redlatch.Open(url)
	if err != nil {
		panic(err)
	}
	_, err = fly(client, func(ctx context.Context) ([]byte, error) {
		fmt.Println("computes")
		return nil, untilEnd(ctx)
	}, redlatch.TTL(time.Second))
	panic(err)
}

func TestTheNextComputesAfterADeath(t *testing.T) {
	server := startServer(t)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), computesAt+"="+server.url())
	output, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	var said string
	_, err = fmt.Fscan(output, &said)
	is(t, said == "computes", "%q, %v", said, err)
	waiting := waitsFor(t, background, server.client(), 1, gives("of the next"))
	must(t, child.Process.Kill())
	_ = child.Wait() // It was killed.
	next := <-waiting
	is(t, next.err == nil && next.value == "of the next", "%q, %v", next.value, next.err)
}

func TestAFlightThatLosesItsLeaseHasNoValue(t *testing.T) {
	for _, failure := range []error{nil, errOfTheFlight} {
		t.Run(fmt.Sprint(failure), func(t *testing.T) {
			server := startServer(t)
			client := server.client()
			landed := computesUntil(background, client, func(ctx context.Context) ([]byte, error) {
				is(t, errors.Is(untilEnd(ctx), redlatch.ErrLost), "%v", context.Cause(ctx))
				return []byte("too late"), failure
			}, redlatch.TTL(lossTTL))
			must(t, client.ForceReleaseAny(background, "x"))
			own := <-landed
			is(t, own.value == "" && errors.Is(own.err, redlatch.ErrLost), "%q, %v", own.value, own.err)
			is(t, failure == nil || errors.Is(own.err, failure), "%v", own.err)
			hasNoValue(t, server)
		})
	}
}

func TestALossThatTheFlightDidNotSeeHasNoValue(t *testing.T) {
	server := startServer(t)
	client := server.client()
	value, err := fly(client, func(ctx context.Context) ([]byte, error) {
		must(t, client.ForceReleaseAny(background, "x"))
		return []byte("mine"), redlatch.LeaseOf(ctx).Check()
	})
	is(t, value == "" && errors.Is(err, redlatch.ErrLost), "%q, %v", value, err)
	hasNoValue(t, server)
}

func TestAFlightThatUnlocksItsLeaseHasNoValue(t *testing.T) {
	server := startServer(t)
	value, err := fly(server.client(), func(ctx context.Context) ([]byte, error) {
		return []byte("mine"), redlatch.LeaseOf(ctx).Unlock(ctx)
	})
	is(t, value == "" && errors.Is(err, redlatch.ErrNotHeld), "%q, %v", value, err)
	hasNoValue(t, server)
}

func TestAValueIsStoredEvenIfTheAnswerIsLate(t *testing.T) {
	server := startServer(t)
	value, err := fly(server.client(), func(context.Context) ([]byte, error) {
		server.stop()
		return []byte("mine"), nil
	})
	server.resume()
	is(t, err == nil && value == "mine", "%q, %v", value, err)
	eventually(t, func() bool { return server.ask("EXISTS", "x") == ":0" })
	hasValue(t, server.client(), "mine")
}

func TestAServerThatCannotStoreAValueIsAnError(t *testing.T) {
	server := startServer(t)
	client := server.client()
	forbids := func(rule string) {
		is(t, server.ask("ACL", "SETUSER", "default", rule) == "+OK", "no ACL")
	}
	value, err := fly(client, func(context.Context) ([]byte, error) {
		forbids("-set")
		return []byte("mine"), nil
	})
	is(t, value == "" && errors.Is(err, redlatch.ErrServer), "%q, %v", value, err)
	forbids("+set")
	_, err = fly(client, func(context.Context) ([]byte, error) {
		forbids("-set")
		return nil, errOfTheFlight
	})
	is(t, err == errOfTheFlight, "that of f: %v", err)
	forbids("+set")
	hasNoValue(t, server)
}

func TestErrorsNameInvalidArgumentsOfAFlight(t *testing.T) {
	server := startServer(t)
	client := server.client()
	for _, one := range []struct {
		ttl    time.Duration
		says   string
		option redlatch.Option
	}{
		{0, "ttl must be 10 ms to 7 days (got 0s)", redlatch.NoRenew()},
		{-time.Hour, "ttl must be", redlatch.NoRenew()},
		{9 * time.Millisecond, "ttl must be", redlatch.NoRenew()},
		{999 * time.Microsecond, "got 999µs", redlatch.NoRenew()},
		{7*24*time.Hour + 1, "ttl must be", redlatch.NoRenew()},
		{time.Hour, "'ttl' must be", redlatch.TTL(time.Millisecond)},
		{time.Hour, "reentrant", redlatch.AsReentrant()},
		{time.Hour, "owner", redlatch.Owner("me")},
		{time.Hour, "format", redlatch.InFormat(redlatch.FormatHashRW)},
		{time.Hour, "limit", redlatch.Set("limit", "2")},
		{time.Hour, "option 1 must not be nil", nil},
	} {
		_, err := client.SingleFlight(background, "x", one.ttl, isComputedTwice, one.option)
		is(t, errors.Is(err, redlatch.ErrInvalid) && strings.Contains(err.Error(), one.says), "%v", err)
		is(t, strings.HasPrefix(err.Error(), "redlatch: single-flight"), "%v", err)
	}
	_, err := client.SingleFlight(background, "", time.Hour, isComputedTwice)
	is(t, errors.Is(err, redlatch.ErrInvalid), "%v", err)
	for _, ttl := range []time.Duration{10 * time.Millisecond, 7 * 24 * time.Hour} {
		value, err := client.SingleFlight(background, ttl.String(), ttl, gives("mine"))
		is(t, err == nil && string(value) == "mine", "%q, %v", value, err)
	}
	hasNoValue(t, server)
}

func TestCloseEndsAFlight(t *testing.T) {
	server := startServer(t)
	landed := computesUntil(background, server.client(), func(ctx context.Context) ([]byte, error) {
		return []byte("mine"), untilEnd(ctx)
	}, redlatch.TTL(lossTTL))
	client := server.client()
	waiting := waitsFor(t, background, client, 1, isComputedTwice)
	must(t, client.Close())
	is(t, errors.Is((<-waiting).err, redlatch.ErrClosed), "one that waits")
	must(t, server.client().ForceReleaseAny(background, "x"))
	is(t, errors.Is((<-landed).err, redlatch.ErrLost), "the one that computes")
	client = server.client()
	landed = computesUntil(background, client, func(ctx context.Context) ([]byte, error) {
		_ = untilEnd(ctx)
		return []byte("mine"), nil
	})
	must(t, client.Close())
	own := <-landed
	is(t, own.value == "" && errors.Is(own.err, redlatch.ErrClosed), "%q, %v", own.value, own.err)
	hasNoValue(t, server)
}

func TestARedlockHasNoFlights(t *testing.T) {
	redlock, err := redlatch.OpenRedlock([]string{"unix:///a", "unix:///b", "unix:///c"})
	must(t, err)
	defer redlock.Close()
	type flights interface {
		SingleFlight(context.Context, string, time.Duration, flightFunc,
			...redlatch.Option) ([]byte, error)
	}
	var _ flights = &redlatch.Client{}
	_, hasFlights := any(redlock).(flights)
	is(t, !hasFlights, "its servers cannot store a value together")
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redlatch.io/redlatch"
)

var background = context.Background()

func TestDeadlineEndsAWaitWithTheReason(t *testing.T) {
	server := startServer(t)
	client := server.client()
	held, err := client.Lock(background, "x")
	must(t, err)
	ctx, cancel := context.WithTimeout(background, time.Second)
	defer cancel()
	_, err = client.Lock(ctx, "x")
	is(t, errors.Is(err, context.DeadlineExceeded), "%v", err)
	is(t, errors.Is(err, redlatch.ErrTimeout) && errors.Is(err, redlatch.ErrBusy), "%v", err)
	is(t, server.ask("EXISTS", "{x}:rl1:q") == ":0", "no waiter is left in the queue")
	must(t, held.Unlock(background))

	server.kill()
	// What was sent while it died may have been carried out.
	eventually(t, func() bool {
		_, err := client.TryLock(background, "x")
		return errors.Is(err, redlatch.ErrUnavailable)
	})
	ctx, cancel = context.WithTimeout(background, 50*time.Millisecond)
	defer cancel()
	_, err = client.Lock(ctx, "x")
	is(t, errors.Is(err, redlatch.ErrUnavailable), "%v", err)
	is(t, errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, redlatch.ErrBusy), "%v", err)
}

func TestContextOfALeaseEndsWithTheLease(t *testing.T) {
	server := startServer(t)
	client := server.client()
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(background, key{}, "kept"))
	lease, err := client.Lock(ctx, "x", redlatch.TTL(lossTTL))
	must(t, err)
	cancel()
	is(t, lease.Context().Err() == nil, "the end of the wait's context is not that of the lease")
	is(t, lease.Context().Value(key{}) == "kept", "it has the values")

	must(t, client.ForceReleaseAny(background, "x"))
	<-lease.Context().Done()
	cause := context.Cause(lease.Context())
	is(t, errors.Is(cause, redlatch.ErrLost), "%v", cause)
	is(t, errors.Is(lease.WaitLost(background), redlatch.ErrLost), "%v", cause)
	is(t, errors.Is(lease.Unlock(background), redlatch.ErrLost), "unlock of a lost one")

	lease, err = client.Lock(background, "x")
	must(t, err)
	inside := lease.Context()
	must(t, lease.Unlock(background))
	is(t, context.Cause(inside) == context.Canceled, "unlocked: %v", context.Cause(inside))
	is(t, lease.WaitLost(background) == nil, "unlocked is not lost")
	late, err := client.Lock(background, "x")
	must(t, err)
	must(t, late.Unlock(background))
	is(t, late.Context().Err() != nil, "asked for afterwards it has ended")
}

func TestDoHoldsTheLockAndReportsALoss(t *testing.T) {
	server := startServer(t)
	client := server.client()
	value, err := redlatch.DoValue(background, client, "x", func(ctx context.Context) (int, error) {
		is(t, redlatch.LeaseOf(ctx).Fence() > 0, "the work has its lease")
		_, err := client.TryLock(background, "x")
		is(t, errors.Is(err, redlatch.ErrBusy), "%v", err)
		return 7, nil
	})
	must(t, err)
	is(t, value == 7 && server.ask("EXISTS", "x") == ":0", "%d", value)

	failure := errors.New("of the work")
	err = client.Do(background, "x", func(ctx context.Context) error {
		must(t, client.ForceReleaseAny(background, "x"))
		must(t, redlatch.LeaseOf(ctx).Context().Err())
		return failure
	})
	is(t, errors.Is(err, failure) && errors.Is(err, redlatch.ErrLost), "%v", err)

	func() {
		defer func() { is(t, recover() == "stop", "it panics on") }()
		_ = client.Do(background, "x", func(context.Context) error { panic("stop") })
	}()
	is(t, server.ask("EXISTS", "x") == ":0", "unlocked after a panic")
}

func TestLockerIsASyncLocker(t *testing.T) {
	server := startServer(t)
	client := server.client()
	locker := client.Locker("x")
	locker.Lock()
	is(t, locker.Lease() != nil && !client.Locker("x").TryLock(), "it holds")
	locker.Unlock()
	is(t, locker.TryLock(), "free again")
	locker.Unlock()
	func() {
		defer func() { is(t, recover() != nil, "unlock of an unlocked one") }()
		locker.Unlock()
	}()
	func() {
		defer func() { is(t, recover() != nil, "a wrong name") }()
		client.Locker("").Lock()
	}()
}

func TestErrorsNameInvalidInput(t *testing.T) {
	client, err := redlatch.Open("unix:///nowhere")
	must(t, err)
	defer client.Close()
	for _, one := range []struct {
		option redlatch.Option
		says   string
	}{
		{redlatch.TTL(time.Millisecond), "option 'ttl' must be 10 ms to 7 days (got '1ms')"},
		{redlatch.TTL(30), "option 'ttl' must be 10 ms to 7 days, such as 500ms, 2s or 1m (got '30ns')"},
		{redlatch.TTL(1500), "(got '1500ns')"},
		{redlatch.MaxHold(-1), "option 'max_hold' must be 0 or 1 ms to 7 days"},
		{redlatch.MaxHold(-time.Second), "option 'max_hold' must be 0 or 1 ms to 7 days"},
		{redlatch.MaxLocalHandoffs(32), "'max_local_handoffs' must be 0 to 31"},
		{redlatch.Label(strings.Repeat("x", 257)), "'label' must be at most 256 bytes (got 257"},
		{redlatch.Owner(""), "option 'owner' must be 1 to 256 bytes (got 0 bytes)"},
		{redlatch.InFormat("set"), "must be auto, string, hash or hash-rw (got 'set')"},
		{redlatch.Set("nonsense", "1"), "unknown option 'nonsense'"},
		{nil, "option 1 must not be nil"},
	} {
		_, err := client.TryLock(background, "x", one.option)
		is(t, errors.Is(err, redlatch.ErrInvalid) && strings.Contains(err.Error(), one.says), "%v", err)
		is(t, strings.Contains(err.Error(), `lock`), "%v", err)
	}
	for _, url := range []string{"", "http://x", "redis://h?comand_timeout=1s"} {
		_, err := redlatch.Open(url)
		is(t, errors.Is(err, redlatch.ErrInvalid), "%q: %v", url, err)
	}
	_, err = redlatch.Open("redis://h", nil)
	is(t, errors.Is(err, redlatch.ErrInvalid) && strings.Contains(err.Error(), "nil"), "%v", err)
	_, err = redlatch.Open("redis://h", redlatch.WithOption("comand_timeout", "1s"))
	is(t, errors.Is(err, redlatch.ErrInvalid) && strings.Contains(err.Error(), "command_timeout"),
		"%v", err)
	_, err = client.TryLock(background, "")
	is(t, errors.Is(err, redlatch.ErrInvalid), "%v", err)
	_, err = client.TryLock(background, strings.Repeat("x", 10_000))
	is(t, errors.Is(err, redlatch.ErrInvalid) && len(err.Error()) < 300, "%v", err)
}

func TestAnEmptyURLInAListIsInvalid(t *testing.T) {
	t.Setenv("REDLATCH_URL", "redis://127.0.0.1:1")
	for _, one := range []struct {
		urls []string
		says string
	}{
		{[]string{""}, "URL 1 must not be empty"},
		{[]string{"redis://a", "", "redis://b", "", "redis://c"}, "URL 2 must not be empty"},
		{[]string{"redis://a", "redis://b", "redis://c", ""}, "URL 4 must not be empty"},
	} {
		_, err := redlatch.OpenRedlock(one.urls, redlatch.FromEnv())
		is(t, errors.Is(err, redlatch.ErrInvalid) && strings.Contains(err.Error(), one.says), "%v", err)
	}
}

func TestNoPasswordIsInAnError(t *testing.T) {
	for _, url := range []string{"redis://h?db=1;password=canary", "canary"} {
		_, err := redlatch.Open(url)
		is(t, errors.Is(err, redlatch.ErrInvalid) && !strings.Contains(err.Error(), "canary"), "%v", err)
		_, err = redlatch.OpenRedlock([]string{"redis://a", url, "redis://b"})
		is(t, errors.Is(err, redlatch.ErrInvalid) && !strings.Contains(err.Error(), "canary"), "%v", err)
	}
}

func TestContextOfALeaseEndsWithItsClient(t *testing.T) {
	client := startServer(t).client()
	lease, err := client.Lock(background, "x")
	must(t, err)
	inside := lease.Context()
	must(t, client.Close())
	must(t, client.Close())
	<-inside.Done()
	is(t, lease.Context().Err() != nil, "its context is asked for once more")
}

func TestContextOfALeaseEndsWithItsDetach(t *testing.T) {
	client := startServer(t).client()
	lease, err := client.Lock(background, "x")
	must(t, err)
	inside := lease.Context()
	token, err := lease.Detach(background)
	must(t, err)
	is(t, context.Cause(inside) == context.Canceled, "detached: %v", context.Cause(inside))
	taken, err := client.Attach(background, "x", token)
	must(t, err)
	must(t, taken.Unlock(background))
}

func TestAFailedDetachKeepsTheLeaseOrReportsItsLoss(t *testing.T) {
	server := startServer(t)
	client := server.client()
	lease, err := client.Lock(background, "x")
	must(t, err)
	inside := lease.Context()
	_, err = lease.Detach(ended())
	is(t, errors.Is(err, redlatch.ErrCancelled), "%v", err)
	is(t, server.ask("ACL", "SETUSER", "default", "-hset") == "+OK", "no ACL")
	_, err = lease.Detach(background)
	is(t, errors.Is(err, redlatch.ErrDenied), "%v", err)
	is(t, server.ask("ACL", "SETUSER", "default", "+hset") == "+OK", "no ACL")
	is(t, lease.State() == redlatch.StateHeld && inside.Err() == nil, "%v", lease.State())
	must(t, lease.Unlock(background))

	lease, err = client.Lock(background, "x")
	must(t, err)
	inside = lease.Context()
	must(t, client.ForceReleaseAny(background, "x"))
	_, err = lease.Detach(background)
	is(t, errors.Is(err, redlatch.ErrLost), "%v", err)
	is(t, errors.Is(context.Cause(inside), redlatch.ErrLost), "%v", context.Cause(inside))
}

// watchedContext tells when it is waited for: then the call of Attach is under way.
type watchedContext struct {
	context.Context
	count  atomic.Int32
	asking chan struct{}
}

func (w *watchedContext) Done() <-chan struct{} {
	if w.count.Add(1) == 1 {
		close(w.asking)
	}
	return w.Context.Done()
}

func TestALateAttachIsDetachedAgain(t *testing.T) {
	server := startServer(t)
	a, b := server.client(), server.client()
	lease, err := a.Lock(background, "x", redlatch.TTL(20*time.Second))
	must(t, err)
	token, err := lease.Detach(background)
	must(t, err)
	must(t, b.Connect(background))
	server.stop()
	ended, cancel := context.WithCancel(background)
	ctx := &watchedContext{Context: ended, asking: make(chan struct{})}
	done := make(chan error)
	go func() {
		_, err := b.Attach(ctx, "x", token)
		done <- err
	}()
	<-ctx.asking
	cancel()
	err = <-done // Though the server answers nothing.
	is(t, errors.Is(err, redlatch.ErrOutcomeUnknown), "%v", err)
	server.resume()
	// The lease is attached, and detached again.
	count := "local mark = redis.call('HGET', KEYS[1], ARGV[1]) or '0' " +
		"return tonumber(string.match(mark, '^%d+'))"
	eventually(t, func() bool { return server.ask("EVAL", count, "1", "{x}:rl1:i", token) == ":3" })
	is(t, server.ask("EXISTS", "x") == ":1", "it stays")
	taken, err := a.Attach(background, "x", token)
	must(t, err)
	must(t, taken.Unlock(background))
}

func TestListInspectAndInfoDescribeLocksAndServers(t *testing.T) {
	server := startServer(t)
	client := server.client(redlatch.WithNamespace("app:"))
	lease, err := client.Lock(background, "one")
	must(t, err)
	list := client.List(background, "")
	is(t, list.Next() && list.Info().Name == "one" && !list.Next(), "the only one")
	must(t, list.Err())
	must(t, lease.Unlock(background))
	_, err = client.Inspect(background, "")
	is(t, errors.Is(err, redlatch.ErrInvalid), "%v", err)
	_, err = client.Inspect(ended(), "one")
	is(t, errors.Is(err, context.Canceled), "%v", err)
	is(t, client.Option("namespace") == "app:", "options")
	nodes, err := client.Info()
	must(t, err)
	is(t, len(nodes) == 1 && nodes[0].State == redlatch.NodeUp && nodes[0].Votes(), "%v", nodes)
	is(t, nodes[0].Role == redlatch.RolePrimary && nodes[0].HasClock, "%v", nodes)
	is(t, nodes[0].Version != "" && strings.Contains(server.url(), nodes[0].Address), "%v", nodes)
}

func TestFromEnvReadsURLAndNamespace(t *testing.T) {
	server := startServer(t)
	t.Setenv("REDLATCH_URL", server.url())
	t.Setenv("REDLATCH_NAMESPACE", "env:")
	client, err := redlatch.Dial(background, "", redlatch.FromEnv())
	must(t, err)
	defer client.Close()
	is(t, client.Option("namespace") == "env:", "%q", client.Option("namespace"))
}

func TestRedlockWorksWithoutOneOfThreeNodes(t *testing.T) {
	urls := []string{}
	servers := []*server{}
	for i := 0; i < 3; i++ {
		servers = append(servers, startServer(t))
		urls = append(urls, servers[i].url())
	}
	redlock, err := redlatch.DialRedlock(background, urls, redlatch.WithOption("restart_guard", "off"))
	must(t, err)
	defer redlock.Close()
	servers[1].kill()
	must(t, redlock.Do(background, "x", func(context.Context) error { return nil }))
	_, err = redlatch.OpenRedlock(urls[:2])
	is(t, errors.Is(err, redlatch.ErrInvalid), "an even number: %v", err)
	nodes, err := redlock.Info()
	must(t, err)
	is(t, len(nodes) == 3 && nodes[2].State == redlatch.NodeUp, "%v", nodes)
	is(t, nodes[1].State == redlatch.NodeAway && nodes[1].Reason != "", "%v", nodes)
}

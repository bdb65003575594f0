// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlatch.io/redlatch"
)

var readBWriteA = []redlatch.NamedMode{redlatch.Read("b"), redlatch.Write("a")}

func allOf(t testing.TB, client *redlatch.Client, names ...redlatch.NamedMode) *redlatch.Lease {
	t.Helper()
	lease, err := client.LockAll(background, names)
	must(t, err)
	must(t, lease.Check())
	return lease
}

// areFree waits until the names have neither holders nor waiters.
func areFree(t testing.TB, server *server, names ...string) {
	t.Helper()
	for _, name := range names {
		tag := "{" + name + "}:rl1:"
		haveGone(t, server, name, tag+"q", tag+"r")
	}
}

// unconnected is for calls that send nothing.
func unconnected(t testing.TB) *redlatch.Client {
	t.Helper()
	client, err := redlatch.Open("unix:///nowhere")
	must(t, err)
	t.Cleanup(func() { must(t, client.Close()) })
	return client
}

func waitingFor(client *redlatch.Client, name string) func() bool {
	return func() bool {
		info, err := client.Inspect(background, name)
		return err == nil && info.Waiting > 0
	}
}

// isRefused tries the name from another client.
func isRefused(t testing.TB, client *redlatch.Client, name string) {
	t.Helper()
	_, err := client.TryLock(background, name)
	is(t, errors.Is(err, redlatch.ErrBusy), "%s: %v", name, err)
}

func fenceOf(server *server, name string) int64 {
	number, _ := strconv.ParseInt(server.ask("INCRBY", "{"+name+"}:rl1:f", "0")[1:], 10, 64)
	return number
}

// insiders counts readers as 1 and a writer as 1000.
type insiders map[string]*atomic.Int64

func (all insiders) enter(t testing.TB, names []redlatch.NamedMode) {
	for _, one := range names {
		now := all[one.Name].Add(weight(one))
		if one.Mode == redlatch.ModeWrite && now != 1000 || now > 1000 {
			t.Errorf("%d are inside of %s", now, one.Name)
		}
	}
}

func (all insiders) leave(names []redlatch.NamedMode) {
	for _, one := range names {
		all[one.Name].Add(-weight(one))
	}
}

func weight(one redlatch.NamedMode) int64 {
	if one.Mode == redlatch.ModeRead {
		return 1
	}
	return 1000
}

func randomNames(random *rand.Rand, from []string) []redlatch.NamedMode {
	var names []redlatch.NamedMode
	for _, place := range random.Perm(len(from))[:1+random.Intn(3)] {
		mode := redlatch.Write
		if random.Intn(3) == 0 {
			mode = redlatch.Read
		}
		names = append(names, mode(from[place]))
	}
	return names
}

func TestLockAllInAnyOrderExcludesAndDoesNotDeadlock(t *testing.T) {
	const goroutines, rounds = 64, 10
	server := startServer(t)
	clients := []*redlatch.Client{server.client(), server.client()}
	names := []string{"a", "b", "c", "d", "e"}
	inside := insiders{}
	for _, name := range names {
		inside[name] = &atomic.Int64{}
	}
	round := func(client *redlatch.Client, random *rand.Rand) error {
		wanted := randomNames(random, names)
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		isCancelled := random.Intn(5) == 0
		if isCancelled {
			defer time.AfterFunc(time.Duration(random.Intn(3000))*time.Microsecond, cancel).Stop()
		}
		lease, err := client.LockAll(ctx, wanted)
		if err != nil {
			if isCancelled && errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		}
		inside.enter(t, wanted)
		err = lease.Check()
		inside.leave(wanted)
		return errors.Join(err, lease.Unlock(background))
	}
	var all sync.WaitGroup
	for i := 0; i < goroutines; i++ {
		all.Add(1)
		client, random := clients[i%2], rand.New(rand.NewSource(int64(i)))
		go func() {
			defer all.Done()
			for k := 0; k < rounds; k++ {
				if err := round(client, random); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	all.Wait()
	areFree(t, server, names...)
}

func TestLockAllHasEachNameInItsMode(t *testing.T) {
	server := startServer(t)
	client, other := server.client(), server.client()
	lease := allOf(t, client, readBWriteA...)
	is(t, lease.Name() == "b" && lease.Mode() == redlatch.ModeRead, "%s", lease.Name())
	isRefused(t, other, "a")
	isRefused(t, other, "b")
	reader, err := other.TryRLock(background, "b")
	must(t, err)
	must(t, reader.Unlock(background))
	must(t, lease.Extend(background, time.Hour))
	is(t, lease.Remaining() > time.Minute, "%v", lease.Remaining())
	must(t, lease.Unlock(background))
	is(t, errors.Is(lease.Unlock(background), redlatch.ErrNotHeld), "it is unlocked once")
	is(t, context.Cause(lease.Context()) == context.Canceled, "%v", context.Cause(lease.Context()))
	areFree(t, server, "a", "b")
}

func TestFencesHasTheFenceOfEachName(t *testing.T) {
	server := startServer(t)
	client := server.client()
	for i := 0; i < 3; i++ { // Then they differ.
		must(t, allOf(t, client, redlatch.Write("a")).Unlock(background))
	}
	names := []redlatch.NamedMode{redlatch.Write("b"), redlatch.Write("a")}
	lease := allOf(t, client, names...)
	names[0].Name = "changed later"
	fences := map[string]int64{"a": fenceOf(server, "a"), "b": fenceOf(server, "b")}
	is(t, maps.Equal(lease.Fences(), fences), "%v, not %v", lease.Fences(), fences)
	is(t, fences["a"] != fences["b"] && lease.Fence() == fences["b"], "%v", fences)
	must(t, lease.Unlock(background))
	is(t, maps.Equal(lease.Fences(), fences), "they stay: %v", lease.Fences())
}

func TestFencesOfOneNameHasOneEntry(t *testing.T) {
	client := startServer(t).client()
	acquire := map[string]func() (*redlatch.Lease, error){
		"a lock": func() (*redlatch.Lease, error) { return client.Lock(background, "x") },
		"a semaphore": func() (*redlatch.Lease, error) {
			return client.Semaphore("x", 2).Acquire(background, 1)
		},
		"LockAll": func() (*redlatch.Lease, error) {
			return client.LockAll(background, []redlatch.NamedMode{redlatch.Read("x")})
		},
		"LockPath": func() (*redlatch.Lease, error) { return client.LockPath(background, "x") },
	}
	for of, take := range acquire {
		lease, err := take()
		must(t, err)
		expected := map[string]int64{"x": lease.Fence()}
		is(t, lease.Fence() > 0 && maps.Equal(lease.Fences(), expected), "%s: %v", of, lease.Fences())
		must(t, lease.Unlock(background))
	}
}

func TestTryLockAllTakesAllOrNone(t *testing.T) {
	server := startServer(t)
	client, other := server.client(), server.client()
	held, err := other.Lock(background, "a")
	must(t, err)
	_, err = client.TryLockAll(background, readBWriteA)
	is(t, errors.Is(err, redlatch.ErrBusy) && strings.Contains(err.Error(), "lock 'a'"), "%v", err)
	areFree(t, server, "b")
	must(t, held.Unlock(background))
	eventually(t, func() bool {
		lease, err := client.TryLockAll(background, readBWriteA)
		return err == nil && lease.Unlock(background) == nil
	})
	areFree(t, server, "a", "b")
}

func TestLockAllThatItsContextEndsLeavesNothing(t *testing.T) {
	server := startServer(t)
	client, other := server.client(), server.client()
	held, err := other.Lock(background, "b")
	must(t, err)

	ctx, cancel := context.WithTimeout(background, 50*time.Millisecond)
	defer cancel()
	_, err = client.LockAll(ctx, readBWriteA)
	is(t, errors.Is(err, context.DeadlineExceeded) && errors.Is(err, redlatch.ErrBusy), "%v", err)
	is(t, strings.Contains(err.Error(), "lock 'b'"), "%v", err)
	areFree(t, server, "a")

	ctx, cancel = context.WithCancel(background)
	done := make(chan error)
	go func() {
		_, err := client.LockAll(ctx, readBWriteA)
		done <- err
	}()
	eventually(t, waitingFor(other, "b"))
	cancel()
	err = <-done
	is(t, errors.Is(err, context.Canceled) && errors.Is(err, redlatch.ErrCancelled), "%v", err)
	areFree(t, server, "a")

	_, err = client.LockAll(ended(), readBWriteA)
	is(t, errors.Is(err, context.Canceled), "%v", err)
	must(t, held.Unlock(background))
	areFree(t, server, "a", "b")
}

func TestALostNameEndsTheLeaseOfAll(t *testing.T) {
	server := startServer(t)
	client, other := server.client(), server.client()
	lease, err := client.LockAll(background, readBWriteA, redlatch.TTL(lossTTL))
	must(t, err)
	must(t, other.ForceReleaseAny(background, "a"))
	<-lease.Context().Done()
	cause := context.Cause(lease.Context())
	is(t, errors.Is(cause, redlatch.ErrLost), "%v", cause)
	is(t, strings.Contains(cause.Error(), "its part 'a' was lost"), "%v", cause)
	reason, text := lease.LostReason()
	is(t, reason == redlatch.LostGone && strings.Contains(text, "'a'"), "%v: %s", reason, text)
	is(t, errors.Is(lease.Unlock(background), redlatch.ErrLost), "unlock of a lost one")
	areFree(t, server, "a", "b")
}

func TestALeaseOfSeveralNamesIsForAllOfThem(t *testing.T) {
	lease := allOf(t, startServer(t).client(), readBWriteA...)
	_, err := lease.Detach(background)
	is(t, errors.Is(err, redlatch.ErrInvalid), "%v", err)
	changes := []func(context.Context) error{lease.Upgrade, lease.TryUpgrade, lease.Downgrade}
	for _, change := range changes {
		err := change(background)
		is(t, errors.Is(err, redlatch.ErrInvalid), "%v", err)
	}
	must(t, lease.Context().Err())
	must(t, lease.Check())
	must(t, lease.Unlock(background))
}

func TestLockPathReadsWhatThePathIsIn(t *testing.T) {
	server := startServer(t)
	client, other := server.client(), server.client()
	lease, err := client.LockPath(background, "a/b/c")
	must(t, err)
	is(t, lease.Name() == "a/b/c" && lease.Mode() == redlatch.ModeWrite, "%s", lease.Name())
	fences := lease.Fences()
	is(t, len(fences) == 3 && fences["a/b/c"] == lease.Fence(), "%v", fences)
	for _, above := range []string{"a", "a/b"} {
		reader, err := other.TryRLock(background, above)
		must(t, err)
		must(t, reader.Unlock(background))
	}
	for _, path := range []string{"a", "a/b", "a/b/c", "a/b/c/d"} {
		_, err := other.TryLockPath(background, path)
		is(t, errors.Is(err, redlatch.ErrBusy) && strings.Contains(err.Error(), path), "%v", err)
	}
	isRefused(t, other, "a/b")
	sibling, err := other.LockPath(background, "a/b/d")
	must(t, err)
	must(t, sibling.Unlock(background))
	must(t, lease.Unlock(background))
	areFree(t, server, "a", "a/b", "a/b/c", "a/b/d")
}

func TestComponentsOfAPathAreBytes(t *testing.T) {
	client := startServer(t).client()
	long := strings.Repeat("a/", 63) + "a"
	for _, path := range []string{"./..", "\x00/\xff", "e\u0301/\u00e9", long} {
		lease, err := client.LockPath(background, path)
		must(t, err)
		_, has := lease.Fences()[path]
		is(t, has && len(lease.Fences()) == strings.Count(path, "/")+1, "%v", lease.Fences())
		must(t, lease.Unlock(background))
	}
}

func TestErrorsNameAWrongPath(t *testing.T) {
	client := unconnected(t)
	const longest = 64
	for path, says := range map[string]string{
		"":                                  "no empty component (got '')",
		"/":                                 "no empty component (got '/')",
		"/a":                                "no empty component (got '/a')",
		"a/":                                "no empty component (got 'a/')",
		"a//b":                              "no empty component (got 'a//b')",
		strings.Repeat("a/", longest) + "a": "at most 64 components (got 65)",
		strings.Repeat("a", 1025):           "name must be 1 to 1024 bytes",
	} {
		for _, lock := range []func(context.Context, string, ...redlatch.Option) (*redlatch.Lease, error){
			client.LockPath, client.TryLockPath,
		} {
			_, err := lock(background, path)
			is(t, errors.Is(err, redlatch.ErrInvalid) && strings.Contains(err.Error(), says), "%v", err)
			var found *redlatch.Error
			is(t, errors.As(err, &found) && found.Op == "lock-path" && found.Name == path, "%v", err)
		}
	}
}

func TestErrorsNameWrongNames(t *testing.T) {
	client := unconnected(t)
	var many []redlatch.NamedMode
	for i := 0; i < 65; i++ {
		many = append(many, redlatch.Write(fmt.Sprint("n", i)))
	}
	one := []redlatch.NamedMode{redlatch.Write("x")}
	for _, wrong := range []struct {
		says    string
		names   []redlatch.NamedMode
		options []redlatch.Option
	}{
		{"names must be 1 to 64 (got 0)", nil, nil},
		{"names must be 1 to 64 (got more)", many, nil},
		{"names must differ (got 'x' twice)", append(one[:1:1], redlatch.Read("x")), nil},
		{"name must be 1 to 1024 bytes (got 0 bytes)", append(one[:1:1], redlatch.Read("")), nil},
		{"mode must be", []redlatch.NamedMode{{Name: "x"}}, nil},
		{"mode must be", []redlatch.NamedMode{{Name: "x", Mode: redlatch.ModeUpgrade}}, nil},
		{"owner", one, []redlatch.Option{redlatch.Owner("job")}},
		{"reentrant", one, []redlatch.Option{redlatch.AsReentrant()}},
		{"mode", one, []redlatch.Option{redlatch.Set("mode", "read")}},
		{"limit", one, []redlatch.Option{redlatch.Set("limit", "2")}},
		{"option 1 must not be nil", one, []redlatch.Option{nil}},
	} {
		_, err := client.TryLockAll(background, wrong.names, wrong.options...)
		is(t, errors.Is(err, redlatch.ErrInvalid) && strings.Contains(err.Error(), wrong.says), "%v", err)
		_, err = client.LockAll(background, wrong.names, wrong.options...)
		is(t, errors.Is(err, redlatch.ErrInvalid) && strings.Contains(err.Error(), "lock-all"), "%v", err)
	}
}

func TestAClosedClientLocksNoNames(t *testing.T) {
	server := startServer(t)
	client, other := server.client(), server.client()
	lease := allOf(t, client, readBWriteA...)
	waiting := make(chan error)
	go func() {
		_, err := client.LockAll(background, readBWriteA)
		waiting <- err
	}()
	eventually(t, waitingFor(other, "a"))
	must(t, client.Close())
	is(t, errors.Is(<-waiting, redlatch.ErrClosed), "a wait ends")
	_, err := client.TryLockAll(background, readBWriteA)
	is(t, errors.Is(err, redlatch.ErrClosed), "%v", err)
	is(t, lease.State() == redlatch.StateReleased, "%v", lease.State())
	areFree(t, server, "a", "b")
}

type allLocker interface {
	LockAll(context.Context, []redlatch.NamedMode, ...redlatch.Option) (*redlatch.Lease, error)
}

type pathLocker interface {
	LockPath(context.Context, string, ...redlatch.Option) (*redlatch.Lease, error)
}

var (
	_ allLocker  = (*redlatch.Client)(nil)
	_ pathLocker = (*redlatch.Client)(nil)
)

func TestARedlockLocksOneName(t *testing.T) {
	var redlock any = &redlatch.Redlock{}
	_, hasAll := redlock.(allLocker)
	_, hasPath := redlock.(pathLocker)
	is(t, !hasAll && !hasPath, "its servers have no common order of waiters")
}

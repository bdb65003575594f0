// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlatch.io/redlatch"
)

func acquired(t testing.TB, semaphore *redlatch.Semaphore, n int64) *redlatch.Lease {
	t.Helper()
	lease, err := semaphore.Acquire(background, n)
	must(t, err)
	is(t, lease.Permits() == n && lease.Check() == nil, "%d of %d permits", lease.Permits(), n)
	return lease
}

func statsOf(t testing.TB, semaphore *redlatch.Semaphore) redlatch.SemaphoreStats {
	t.Helper()
	stats, err := semaphore.Stats(background)
	must(t, err)
	return stats
}

func isBusy(t testing.TB, semaphore *redlatch.Semaphore, n int64) {
	t.Helper()
	lease, err := semaphore.TryAcquire(background, n)
	is(t, lease == nil && errors.Is(err, redlatch.ErrBusy), "%v", err)
}

func isEmpty(t testing.TB, server *server) {
	t.Helper()
	haveGone(t, server, "x", "{x}:rl1:sq", "{x}:rl1:sr")
}

// haveGone waits, since a cancelled wait leaves the queue in the background.
func haveGone(t testing.TB, server *server, keys ...string) {
	t.Helper()
	for _, key := range keys {
		eventually(t, func() bool { return server.ask("EXISTS", key) == ":0" })
	}
}

func TestSemaphoreHasAtMostItsLimitInside(t *testing.T) {
	const goroutines, rounds, limit = 64, 5, 3
	server := startServer(t)
	clients := []*redlatch.Client{server.client(), server.client()}
	var inside, most atomic.Int64
	var all sync.WaitGroup
	for i := 0; i < goroutines; i++ {
		all.Add(1)
		semaphore, n := clients[i%2].Semaphore("x", limit), int64(i%limit+1)
		go func() {
			defer all.Done()
			for k := 0; k < rounds; k++ {
				lease, err := semaphore.Acquire(background, n)
				if err != nil {
					t.Error(err)
					return
				}
				now := inside.Add(n)
				for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); {
					seen = most.Load()
				}
				inside.Add(-n)
				if err := lease.Unlock(background); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	all.Wait()
	is(t, most.Load() > 0 && most.Load() <= limit, "%d permits were out", most.Load())
	isEmpty(t, server)
}

func TestEachAcquireOfASemaphoreHasItsOwnLease(t *testing.T) {
	server := startServer(t)
	semaphore := server.client().Semaphore("x", 3)
	one, two := acquired(t, semaphore, 1), acquired(t, semaphore, 2)
	is(t, one.Token() != two.Token() && one.Fence() < two.Fence(), "%s", one.Token())
	isBusy(t, semaphore, 1) // It is not reentrant.
	must(t, one.Unlock(background))
	is(t, errors.Is(one.Unlock(background), redlatch.ErrNotHeld), "it is unlocked once")
	is(t, one.Permits() == 1 && two.Check() == nil, "the other one is held")
	isBusy(t, semaphore, 2)
	must(t, acquired(t, semaphore, 1).Unlock(background))
	must(t, two.Unlock(background))
	isEmpty(t, server)
}

func TestOtherLocksHaveOnePermit(t *testing.T) {
	client := startServer(t).client()
	lease, err := client.RLock(background, "x")
	must(t, err)
	is(t, lease.Permits() == 1, "%d", lease.Permits())
	isBusy(t, client.Semaphore("x", 2), 1)
	must(t, lease.Unlock(background))
	is(t, lease.Permits() == 1, "%d", lease.Permits())
}

func TestStatsAreTheNumbersOfASemaphore(t *testing.T) {
	server := startServer(t)
	client := server.client(redlatch.WithNamespace("app:"))
	semaphore, narrow := client.Semaphore("x", 5), client.Semaphore("x", 2)
	free := redlatch.SemaphoreStats{Limit: 5, Cap: redlatch.NoCap}
	is(t, statsOf(t, semaphore) == free, "%+v", statsOf(t, semaphore))
	lease := acquired(t, semaphore, 3)
	stats := statsOf(t, narrow)
	is(t, stats == redlatch.SemaphoreStats{Used: 3, Limit: 2, Cap: redlatch.NoCap}, "%+v", stats)
	is(t, server.ask("SET", "app:{app:x}:rl1:sc", "4", "PX", "60000") == "+OK", "no cap")
	isBusy(t, semaphore, 2)
	ctx, cancel := context.WithCancel(background)
	done := make(chan error)
	go func() {
		_, err := semaphore.Acquire(ctx, 2)
		done <- err
	}()
	eventually(t, func() bool { return statsOf(t, semaphore).Waiting == 1 })
	stats = statsOf(t, semaphore)
	is(t, stats == redlatch.SemaphoreStats{Used: 3, Limit: 4, Cap: 4, Waiting: 1}, "%+v", stats)
	is(t, statsOf(t, narrow).Limit == 2, "%+v", statsOf(t, narrow))
	info, err := client.Inspect(background, "x")
	must(t, err)
	is(t, len(info.Holders) == 1 && info.Holders[0].Permits == 3 && info.Cap == 4, "%+v", info)
	cancel()
	is(t, errors.Is(<-done, context.Canceled), "it was cancelled")
	must(t, lease.Unlock(background))
	_, err = semaphore.Stats(ended())
	is(t, errors.Is(err, context.Canceled), "%v", err)
}

func TestASmallAcquireDoesNotOvertakeABigOne(t *testing.T) {
	client := startServer(t).client()
	semaphore := client.Semaphore("x", 3)
	first, second := acquired(t, semaphore, 1), acquired(t, semaphore, 1)
	order := make(chan *redlatch.Lease)
	for i, n := range []int64{3, 1} {
		go func(n int64) {
			lease, err := semaphore.Acquire(background, n)
			if err != nil {
				t.Error(err)
			}
			order <- lease
		}(n)
		eventually(t, func() bool { return statsOf(t, semaphore).Waiting == int64(i+1) })
	}
	isBusy(t, semaphore, 1)
	must(t, first.Unlock(background))
	is(t, statsOf(t, semaphore).Waiting == 2, "the one permit that is free stays free")
	must(t, second.Unlock(background))
	big := <-order
	is(t, big.Permits() == 3 && statsOf(t, semaphore).Waiting == 1, "%d", big.Permits())
	must(t, big.Unlock(background))
	must(t, (<-order).Unlock(background))
}

func TestAnAcquireThatItsContextEndsLeavesNothing(t *testing.T) {
	server := startServer(t)
	semaphore := server.client().Semaphore("x", 1)
	held := acquired(t, semaphore, 1)
	ctx, cancel := context.WithTimeout(background, 50*time.Millisecond)
	defer cancel()
	_, err := semaphore.Acquire(ctx, 1)
	is(t, errors.Is(err, context.DeadlineExceeded) && errors.Is(err, redlatch.ErrBusy), "%v", err)
	_, err = semaphore.Acquire(ended(), 1)
	is(t, errors.Is(err, context.Canceled), "%v", err)

	// Some are cancelled while they wait, and some while they are granted.
	const goroutines = 32
	ctx, cancel = context.WithCancel(background)
	var all sync.WaitGroup
	for i := 0; i < goroutines; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			lease, err := semaphore.Acquire(ctx, 1)
			if err == nil {
				err = lease.Unlock(background)
			}
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}()
	}
	eventually(t, func() bool { return statsOf(t, semaphore).Waiting > 0 })
	released := make(chan error)
	go func() { released <- held.Unlock(background) }()
	cancel()
	must(t, <-released)
	all.Wait()
	isEmpty(t, server)
	must(t, acquired(t, semaphore, 1).Unlock(background))
}

func TestErrorsNameInvalidPermits(t *testing.T) {
	client, err := redlatch.Open("unix:///nowhere")
	must(t, err)
	defer client.Close()
	const allowed = "must be 1 to 1000000 (got '"
	for _, one := range []struct {
		name     string
		limit, n int64
		says     string
		options  []redlatch.Option
	}{
		{"x", 0, 1, "'limit' " + allowed + "0')", nil},
		{"x", -1, 1, "'limit' " + allowed + "-1')", nil},
		{"x", 1_000_001, 1, "'limit' " + allowed + "1000001')", nil},
		{"x", 3, 0, "'permits' " + allowed + "0')", nil},
		{"x", 3, -1, "'permits' " + allowed + "-1')", nil},
		{"x", 3, 1 << 40, "'permits' " + allowed + "1099511627776')", nil},
		{"x", 3, 4, "permits", nil},
		{"", 3, 1, "name", nil},
		{"x", 3, 1, "owner", []redlatch.Option{redlatch.Owner("job")}},
		{"x", 3, 1, "reentrant", []redlatch.Option{redlatch.AsReentrant()}},
		{"x", 3, 1, "format", []redlatch.Option{redlatch.InFormat(redlatch.FormatHash)}},
		{"x", 3, 1, "mode", []redlatch.Option{redlatch.Set("mode", "read")}},
		{"x", 3, 1, "option 1 must not be nil", []redlatch.Option{nil}},
	} {
		semaphore := client.Semaphore(one.name, one.limit, one.options...)
		_, err := semaphore.TryAcquire(background, one.n)
		is(t, errors.Is(err, redlatch.ErrInvalid) && strings.Contains(err.Error(), one.says), "%v", err)
		_, err = semaphore.Acquire(background, one.n)
		is(t, errors.Is(err, redlatch.ErrInvalid) && strings.Contains(err.Error(), "acquire"), "%v", err)
	}
	_, err = client.Semaphore("", 3).Stats(background)
	is(t, errors.Is(err, redlatch.ErrInvalid), "%v", err)
}

func TestALostLeaseOfASemaphoreLeavesTheOthers(t *testing.T) {
	client := startServer(t).client()
	semaphore := client.Semaphore("x", 2, redlatch.TTL(lossTTL))
	lost, kept := acquired(t, semaphore, 1), acquired(t, semaphore, 1)
	must(t, client.ForceRelease(background, "x", lost.Token()))
	next := acquired(t, semaphore, 1)
	is(t, errors.Is(lost.WaitLost(background), redlatch.ErrLost), "%v", lost.State())
	is(t, errors.Is(lost.Unlock(background), redlatch.ErrLost), "unlock of a lost one")
	must(t, kept.Unlock(background))
	must(t, next.Unlock(background))
}

func TestALeaseOfASemaphoreIsExtendedAlone(t *testing.T) {
	client := startServer(t).client()
	semaphore := client.Semaphore("x", 2)
	one, other := acquired(t, semaphore, 1), acquired(t, semaphore, 1)
	must(t, one.Extend(background, time.Hour))
	is(t, one.Remaining() > time.Minute && other.Remaining() < time.Minute, "%v", one.Remaining())
	for _, change := range []func(context.Context) error{one.Upgrade, one.Downgrade} {
		is(t, errors.Is(change(background), redlatch.ErrInvalid), "it has no readers")
	}
	must(t, one.Unlock(background))
	must(t, other.Unlock(background))
}

func TestALeaseOfASemaphoreIsAttachedWithItsPermits(t *testing.T) {
	server := startServer(t)
	here, there := server.client().Semaphore("x", 3), server.client().Semaphore("x", 3)
	lease := acquired(t, here, 2)
	fence := lease.Fence()
	_, err := there.Attach(background, 2, lease.Token())
	is(t, errors.Is(err, redlatch.ErrNotHeld), "it is not detached: %v", err)
	token, err := lease.Detach(background)
	must(t, err)
	_, err = there.Attach(background, 1, token)
	is(t, errors.Is(err, redlatch.ErrNotHeld), "other permits: %v", err)
	taken, err := there.AttachFence(background, 2, token, fence)
	must(t, err)
	is(t, taken.Permits() == 2 && taken.Fence() == fence, "%d", taken.Permits())
	must(t, taken.Check())
	is(t, statsOf(t, here).Used == 2, "%+v", statsOf(t, here))
	must(t, taken.Unlock(background))
	isEmpty(t, server)
}

func TestAClosedClientHasNoSemaphores(t *testing.T) {
	server := startServer(t)
	client := server.client()
	semaphore := client.Semaphore("x", 1)
	lease := acquired(t, semaphore, 1)
	waiting := make(chan error)
	go func() {
		_, err := semaphore.Acquire(background, 1)
		waiting <- err
	}()
	eventually(t, func() bool { return statsOf(t, semaphore).Waiting == 1 })
	must(t, client.Close())
	is(t, errors.Is(<-waiting, redlatch.ErrClosed), "a wait ends")
	_, err := semaphore.TryAcquire(background, 1)
	is(t, errors.Is(err, redlatch.ErrClosed), "%v", err)
	_, err = semaphore.Stats(background)
	is(t, errors.Is(err, redlatch.ErrClosed), "%v", err)
	is(t, lease.State() == redlatch.StateReleased, "%v", lease.State())
	isEmpty(t, server)
}

func TestGoroutinesThatShareASemaphoreWaitWithoutANotice(t *testing.T) {
	lines := logged(t)
	client := startServer(t).client()
	semaphore := client.Semaphore("x", 1)
	held := acquired(t, semaphore, 1)
	ctx, cancel := context.WithTimeout(background, 100*time.Millisecond)
	defer cancel()
	_, err := semaphore.Acquire(ctx, 1)
	is(t, errors.Is(err, redlatch.ErrTimeout), "%v", err)
	must(t, held.Unlock(background))
	is(t, lines.count("a goroutine waits") == 0, "%s", lines.text.String())
}

func TestARedlockHasNoSemaphores(t *testing.T) {
	redlock, err := redlatch.OpenRedlock([]string{"unix:///a", "unix:///b", "unix:///c"})
	must(t, err)
	defer redlock.Close()
	_, err = redlock.TryLock(background, "x", redlatch.Set("limit", "2"))
	is(t, errors.Is(err, redlatch.ErrUnsupported), "%v", err)
	is(t, strings.Contains(err.Error(), "semaphore"), "%v", err)
}

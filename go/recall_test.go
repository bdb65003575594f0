// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"redlatch.io/redlatch"
)

func recalls(t testing.TB, client *redlatch.Client, name, reason string, heard int64) {
	t.Helper()
	count, err := client.Recall(background, name, reason)
	must(t, err)
	is(t, count == heard, "%d holders have heard it, not %d", count, heard)
}

func isQuiet(t testing.TB, lease *redlatch.Lease) {
	t.Helper()
	select {
	case <-lease.Recalled():
		t.Fatal("it was recalled")
	default:
	}
}

func TestAHolderIsAskedToFinish(t *testing.T) {
	server := startServer(t)
	lease, err := server.client().Lock(background, "x")
	must(t, err)
	isQuiet(t, lease)
	is(t, lease.RecallCount() == 0 && lease.RecallReason() == "", "no recall")
	recalls(t, server.client(), "x", "deploy \"7\"\n", 1)
	<-lease.Recalled()
	is(t, lease.RecallCount() == 1, "%d", lease.RecallCount())
	is(t, lease.RecallReason() == "deploy \"7\" ", "%q", lease.RecallReason())
	must(t, lease.Check())
	recalls(t, server.client(), "x", "again", 1)
	eventually(t, func() bool { // Nothing watches any more: the next answer brings it.
		must(t, lease.Extend(background, lossTTL*10))
		return lease.RecallCount() == 2 && lease.RecallReason() == "again"
	})
	must(t, lease.Unlock(background))
}

func TestARecallBeforeTheWatchIsNotMissed(t *testing.T) {
	server := startServer(t)
	lease, err := server.client().Lock(background, "x")
	must(t, err)
	recalls(t, server.client(), "x", "early", 1)
	must(t, lease.Extend(background, lossTTL*10))
	<-lease.Recalled()
	must(t, lease.Unlock(background))
}

func TestNobodyHearsTheRecallOfAFreeLock(t *testing.T) {
	server := startServer(t)
	client := server.client()
	recalls(t, client, "x", "", 0)
	lease, err := client.Lock(background, "y")
	must(t, err)
	isQuiet(t, lease)
	must(t, lease.Unlock(background))
	recalls(t, client, "y", "", 0)
	isQuiet(t, lease)
}

// recallsTwice recalls a free lock, and then its holder. It reports whether both recalls were
// within a second, and whether the holder heard the second one.
func recallsTwice(t *testing.T, server *server, client *redlatch.Client, name string) (isFast,
	isHeard bool) {
	t.Helper()
	begun := time.Now()
	recalls(t, client, name, "", 0)
	lease, err := server.client().Lock(background, name)
	must(t, err)
	heard, err := client.Recall(background, name, "")
	must(t, err)
	isFast = time.Since(begun) < time.Second
	must(t, lease.Extend(background, lossTTL*10)) // Its answer would bring the recall.
	is(t, lease.RecallCount() == heard, "%d and %d", lease.RecallCount(), heard)
	must(t, lease.Unlock(background))
	return isFast, heard > 0
}

func TestWithinASecondOneRecallIsSent(t *testing.T) {
	server := startServer(t)
	client := server.client()
	isFast, isHeard := false, false
	for i := 0; !isFast; i++ { // A busy machine may need longer than a second.
		isFast, isHeard = recallsTwice(t, server, client, fmt.Sprint("x ", i))
	}
	is(t, !isHeard, "the second recall was sent")
}

// ---- goroutines

// leaksNone runs f, and waits until the goroutines that it has started have ended.
func leaksNone(t *testing.T, f func()) {
	t.Helper()
	known := goleak.IgnoreCurrent()
	f()
	eventually(t, func() bool { return goleak.Find(known) == nil })
}

func openClient(t *testing.T, server *server) *redlatch.Client {
	t.Helper()
	client, err := redlatch.Open(server.url())
	must(t, err)
	return client
}

func TestAWatchForRecallsLeaksNoGoroutine(t *testing.T) {
	server := startServer(t)
	other := server.client()
	watchedAt := map[string]func(*redlatch.Client, *redlatch.Lease){
		"a recall comes": func(_ *redlatch.Client, lease *redlatch.Lease) {
			recalled := lease.Recalled()
			recalls(t, other, lease.Name(), "", 1)
			<-recalled
		},
		"no recall comes": func(_ *redlatch.Client, lease *redlatch.Lease) { isQuiet(t, lease) },
		"it is unlocked": func(_ *redlatch.Client, lease *redlatch.Lease) {
			must(t, lease.Unlock(background))
			isQuiet(t, lease)
		},
		"it is unlocked later": func(_ *redlatch.Client, lease *redlatch.Lease) {
			isQuiet(t, lease)
			must(t, lease.Unlock(background))
		},
		"it is detached": func(_ *redlatch.Client, lease *redlatch.Lease) {
			isQuiet(t, lease)
			_, err := lease.Detach(background)
			must(t, err)
		},
		"it is lost": func(client *redlatch.Client, lease *redlatch.Lease) {
			must(t, client.ForceReleaseAny(background, lease.Name()))
			<-lease.Context().Done()
			isQuiet(t, lease)
		},
		"the client is closed": func(client *redlatch.Client, lease *redlatch.Lease) {
			must(t, client.Close())
			isQuiet(t, lease)
		},
	}
	for when, watch := range watchedAt {
		t.Run(when, func(t *testing.T) {
			var kept *redlatch.Lease // The collector would end its watch.
			leaksNone(t, func() {
				client := openClient(t, server)
				lease, err := client.Lock(background, when, redlatch.TTL(lossTTL))
				must(t, err)
				watch(client, lease)
				must(t, client.Close())
				kept = lease
			})
			runtime.KeepAlive(kept)
		})
	}
}

func TestALeadThatIsRecalledLeaksNoGoroutine(t *testing.T) {
	server := startServer(t)
	other := server.client()
	leaksNone(t, func() {
		client := openClient(t, server)
		_, done := leadsUntil(background, client, func(ctx context.Context) error {
			recalls(t, other, "x", "", 1)
			_ = untilEnd(ctx)
			return errOfTheLeader
		})
		is(t, <-done == errOfTheLeader, "it is returned")
		must(t, client.Close())
	})
}

// ---- leaders

func TestAllHoldersHearARecall(t *testing.T) {
	server := startServer(t)
	client := server.client()
	leases := map[string][]*redlatch.Lease{}
	for i := 0; i < 3; i++ {
		reader, err := client.RLock(background, "readers")
		must(t, err)
		permit, err := client.Semaphore("permits", 5).Acquire(background, 1)
		must(t, err)
		leases["readers"] = append(leases["readers"], reader)
		leases["permits"] = append(leases["permits"], permit)
	}
	several, err := client.LockAll(background,
		[]redlatch.NamedMode{redlatch.Write("a"), redlatch.Write("b")})
	must(t, err)
	leases["b"] = []*redlatch.Lease{several}
	for name, all := range leases {
		for _, lease := range all {
			isQuiet(t, lease)
		}
		recalls(t, server.client(), name, name, int64(len(all)))
		for _, lease := range all {
			<-lease.Recalled()
			is(t, lease.RecallReason() == name, "%q", lease.RecallReason())
			must(t, lease.Unlock(background))
		}
	}
}

func TestManyLeasesAreWatchedForRecalls(t *testing.T) {
	const leases = 64
	server := startServer(t)
	client, other := server.client(), server.client()
	var all sync.WaitGroup
	for i := 0; i < leases; i++ {
		all.Add(1)
		name := fmt.Sprint("lock ", i)
		go func() {
			defer all.Done()
			lease, err := client.Lock(background, name)
			if err != nil {
				t.Error(err)
				return
			}
			recalled := lease.Recalled()
			if heard, err := other.Recall(background, name, ""); heard != 1 || err != nil {
				t.Error(heard, err)
			}
			<-recalled
			if err := lease.Unlock(background); err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
}

func TestALeaderThatIsAskedResigns(t *testing.T) {
	server := startServer(t)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	terms := make(chan int64, 8)
	causes := make(chan error, 8)
	lead := func(id string) <-chan error {
		return leads(ctx, server.client(), func(ctx context.Context, term redlatch.Term) error {
			terms <- term.Number
			cause := untilEnd(ctx)
			causes <- cause
			return cause
		}, redlatch.CandidateID(id))
	}
	first := lead("first")
	before := <-terms
	second := lead("second")
	eventuallyWaits(t, server.client(), 1)
	heard, err := server.client().Resign(background, "x", "deploy")
	must(t, err)
	is(t, heard == 1, "%d", heard)
	is(t, errors.Is(<-causes, redlatch.ErrRecalled), "it knows why")
	is(t, <-terms > before, "terms rise")
	hasLeader(t, server.client(), "second", leaderTerm(t, server.client()))
	eventuallyWaits(t, server.client(), 1) // The first one campaigns again.
	cancel()
	for _, done := range []<-chan error{first, second} {
		is(t, <-done == context.Canceled, "they are cancelled")
	}
}

func TestTheErrorOfALeaderThatIsAskedIsReturned(t *testing.T) {
	server := startServer(t)
	asked := 0
	err := server.client().Lead(background, "x", func(ctx context.Context, _ redlatch.Term) error {
		recalls(t, server.client(), "x", "", 1)
		cause := untilEnd(ctx)
		is(t, errors.Is(cause, redlatch.ErrRecalled), "%v", cause)
		if asked++; asked == 1 {
			return nil // It campaigns again.
		}
		return errOfTheLeader
	})
	is(t, err == errOfTheLeader, "%v", err)
	is(t, asked == 2, "it led %d times", asked)
	isFree(t, server)
}

func leaderTerm(t testing.TB, client *redlatch.Client) int64 {
	t.Helper()
	leader, _, err := client.Leader(background, "x")
	must(t, err)
	return leader.Term
}

func TestARecallIsRefusedWithTheReason(t *testing.T) {
	client := startServer(t).client()
	_, err := client.Recall(background, "x", strings.Repeat("r", 129))
	is(t, errors.Is(err, redlatch.ErrInvalid), "%v", err)
	is(t, strings.Contains(err.Error(), "reason must be at most 128 bytes (got 129 bytes)"), "%v", err)
	_, err = client.Recall(background, "", "")
	is(t, errors.Is(err, redlatch.ErrInvalid), "%v", err)
	ended, cancel := context.WithCancel(background)
	cancel()
	_, err = client.Recall(ended, "x", "")
	is(t, errors.Is(err, context.Canceled), "%v", err)
}

// ---- retained locks

func TestARetainedLockIsAcquiredWithoutACall(t *testing.T) {
	server := startServer(t)
	client := server.client()
	first, err := client.Lock(background, "x", redlatch.Retain(patience))
	must(t, err)
	must(t, first.Unlock(background))
	is(t, server.ask("EXISTS", "x") == ":1", "the client keeps it")
	second, err := client.TryLock(background, "x", redlatch.Retain(patience))
	must(t, err)
	is(t, second.Token() == first.Token(), "no call")
	is(t, second.Fence() == first.Fence()+1, "%d after %d", second.Fence(), first.Fence())
	must(t, second.Unlock(background))
	other, err := server.client().Lock(background, "x")
	must(t, err)
	is(t, other.Fence() > second.Fence(), "%d after %d", other.Fence(), second.Fence())
	must(t, other.Unlock(background))
}

func TestCloseGivesRetainedLocksBack(t *testing.T) {
	server := startServer(t)
	client, err := redlatch.Open(server.url())
	must(t, err)
	must(t, client.Do(background, "x", func(context.Context) error { return nil },
		redlatch.Retain(patience)))
	is(t, server.ask("EXISTS", "x") == ":1", "the client keeps it")
	must(t, client.Close())
	is(t, server.ask("EXISTS", "x") == ":0", "it is given back")
}

func TestARetainedReaderIsTakenByTheNextOne(t *testing.T) {
	server := startServer(t)
	client := server.client()
	first, err := client.RLock(background, "x", redlatch.Retain(patience))
	must(t, err)
	must(t, first.Unlock(background))
	is(t, server.ask("EXISTS", "x") == ":1", "the client keeps it")
	second, err := client.TryRLock(background, "x", redlatch.Retain(patience))
	must(t, err)
	is(t, second.Token() == first.Token(), "no call")
	is(t, second.Fence() == first.Fence(), "that of the last writer")
	must(t, second.Unlock(background))
	writer, err := server.client().Lock(background, "x")
	must(t, err)
	is(t, writer.Fence() > second.Fence(), "%d after %d", writer.Fence(), second.Fence())
	must(t, writer.Unlock(background))
}

func TestRetainIsRefusedWithTheReason(t *testing.T) {
	client := startServer(t).client()
	redlock, err := redlatch.OpenRedlock([]string{"unix:///a", "unix:///b", "unix:///c"})
	must(t, err)
	defer redlock.Close()
	retain := redlatch.Retain(patience)
	for reason, acquire := range map[string]func() (*redlatch.Lease, error){
		"an election, which has a leader as long as a term": func() (*redlatch.Lease, error) {
			return client.Campaign(background, "x", retain)
		},
		"a Redlock, which is held at several servers": func() (*redlatch.Lease, error) {
			return redlock.TryLock(background, "x", retain)
		},
		"a semaphore, which gives its permits to others": func() (*redlatch.Lease, error) {
			return client.Semaphore("x", 2, retain).TryAcquire(background, 1)
		},
		"several names, which are released together": func() (*redlatch.Lease, error) {
			return client.TryLockAll(background,
				[]redlatch.NamedMode{redlatch.Write("x"), redlatch.Write("y")}, retain)
		},
	} {
		_, err := acquire()
		is(t, errors.Is(err, redlatch.ErrInvalid), "%s: %v", reason, err)
		text := "option 'retain' must be 0 for " + reason + " (got 20000 ms)"
		is(t, strings.Contains(err.Error(), text), "%v", err)
	}
}

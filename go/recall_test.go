// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

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

func TestWithinASecondOneRecallIsSent(t *testing.T) {
	server := startServer(t)
	client := server.client()
	recalls(t, client, "x", "", 0)
	lease, err := server.client().Lock(background, "x")
	must(t, err)
	recalls(t, client, "x", "", 0)
	isQuiet(t, lease)
	must(t, lease.Unlock(background))
}

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

func TestRetainIsRefusedWithTheReason(t *testing.T) {
	client := startServer(t).client()
	_, err := client.Campaign(background, "x", redlatch.Retain(patience))
	is(t, errors.Is(err, redlatch.ErrInvalid), "%v", err)
	is(t, strings.Contains(err.Error(), "option 'retain' must be 0 for an election"), "%v", err)
}

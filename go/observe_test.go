// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"redlatch.io/redlatch"
)

// observes ends with the test, which finds the goroutine if that does not end.
func observes(t testing.TB, client *redlatch.Client, name string) <-chan redlatch.Leader {
	t.Helper()
	ctx, cancel := context.WithCancel(background)
	t.Cleanup(cancel)
	return client.Observe(ctx, name)
}

func campaigns(t testing.TB, client *redlatch.Client, id string,
	options ...redlatch.Option) *redlatch.Lease {
	t.Helper()
	lease, err := client.Campaign(background, "x", append(options, redlatch.CandidateID(id))...)
	must(t, err)
	return lease
}

// receive returns the next leader; isOpen is false after the last one.
func receive(t testing.TB, leaders <-chan redlatch.Leader) (leader redlatch.Leader, isOpen bool) {
	t.Helper()
	select {
	case leader, isOpen = <-leaders:
		return leader, isOpen
	case <-time.After(patience):
		t.Fatal("there is no news")
		return
	}
}

func sees(t testing.TB, leaders <-chan redlatch.Leader, id string, term int64) {
	t.Helper()
	leader, isOpen := receive(t, leaders)
	is(t, isOpen && leader.ID == id && leader.Term == term, "%+v, %v", leader, isOpen)
}

func TestAnObserverSeesThePresentLeaderAndEachChange(t *testing.T) {
	for _, protocol := range []string{"3", "2"} {
		t.Run("RESP"+protocol, func(t *testing.T) {
			server := startServer(t)
			client, other := server.client(), server.client()
			first := campaigns(t, client, "first")
			leaders := observes(t, server.client(redlatch.WithOption("protocol", protocol)), "x")
			sees(t, leaders, "first", first.Fence())
			must(t, first.Unlock(background))
			sees(t, leaders, "", 0)
			second := campaigns(t, other, "second")
			sees(t, leaders, "second", second.Fence())
			is(t, second.Fence() > first.Fence(), "%d after %d", second.Fence(), first.Fence())
			own := observes(t, other, "x")
			sees(t, own, "second", second.Fence())
			must(t, second.Unlock(background))
			sees(t, own, "", 0)
			sees(t, leaders, "", 0)
		})
	}
}

func TestAnObserverSeesFirstThatNoneLeads(t *testing.T) {
	server := startServer(t)
	client := server.client()
	held, err := client.Lock(background, "x")
	must(t, err)
	leaders := observes(t, client, "x")
	leader, isOpen := receive(t, leaders)
	is(t, isOpen && leader == redlatch.Leader{} && leader.IsNone(), "%+v", leader)
	must(t, held.Unlock(background))
	term := campaigns(t, client, "a")
	sees(t, leaders, "a", term.Fence())
}

func TestAnObserverSeesALossAndTheNextTerm(t *testing.T) {
	server := startServer(t)
	client := server.client()
	lost := campaigns(t, client, "lost", redlatch.TTL(lossTTL), redlatch.NoRenew())
	leaders := observes(t, server.client(), "x")
	sees(t, leaders, "lost", lost.Fence())
	sees(t, leaders, "", 0)
	is(t, errors.Is(lost.Check(), redlatch.ErrLost), "the observer is first")
	next := campaigns(t, client, "next")
	sees(t, leaders, "next", next.Fence())
}

func TestAnObserverSeesTheNextLeaderAfterARestartOfTheServer(t *testing.T) {
	server := startServer(t)
	leaders := observes(t, server.client(), "x")
	sees(t, leaders, "", 0)
	first := campaigns(t, server.client(), "first")
	sees(t, leaders, "first", first.Fence())
	server.kill()
	must(t, server.launch())
	next := campaigns(t, server.client(), "next")
	is(t, next.Fence() > first.Fence(), "%d after %d", next.Fence(), first.Fence())
	for {
		// None leads for a moment: the data is lost.
		leader, isOpen := receive(t, leaders)
		is(t, isOpen, "it waits for the server")
		if !leader.IsNone() {
			is(t, leader.ID == "next" && leader.Term == next.Fence(), "%+v", leader)
			return
		}
	}
}

func TestASlowReaderGetsTheNewestLeader(t *testing.T) {
	server := startServer(t)
	client := server.client()
	slow, fast := observes(t, client, "x"), observes(t, client, "x")
	sees(t, fast, "", 0)
	for i := 0; i < 5; i++ {
		term := campaigns(t, client, "a")
		sees(t, fast, "a", term.Fence())
		must(t, term.Unlock(background))
		sees(t, fast, "", 0)
	}
	term := campaigns(t, client, "newest")
	sees(t, fast, "newest", term.Fence())
	// One is kept, and another one may be under way.
	for count := 1; ; count++ {
		leader, isOpen := receive(t, slow)
		is(t, isOpen && count <= 3, "%+v is number %d", leader, count)
		if leader.ID == "newest" {
			return
		}
	}
}

func TestAnObserverEndsWithItsContextOrItsClient(t *testing.T) {
	server := startServer(t)
	client := server.client()
	ctx, cancel := context.WithCancel(background)
	cancelled, closed := client.Observe(ctx, "x"), observes(t, client, "x")
	sees(t, cancelled, "", 0)
	sees(t, closed, "", 0)
	cancel()
	_, isOpen := receive(t, cancelled)
	is(t, !isOpen, "it goes on after its context")
	must(t, client.Close())
	_, isOpen = receive(t, closed)
	is(t, !isOpen, "it goes on after Close")
	_, isOpen = receive(t, client.Observe(background, "x"))
	is(t, !isOpen, "it begins after Close")
	_, isOpen = receive(t, server.client().Observe(ctx, "x"))
	is(t, !isOpen, "it begins with a context that has ended")
}

func TestAnErrorThatCannotPassEndsAnObserverAndIsLogged(t *testing.T) {
	client := startServer(t).client()
	var written syncedBuffer
	defer client.LogTo(slog.New(slog.NewTextHandler(&written, nil)))()
	_, isOpen := receive(t, client.Observe(background, ""))
	is(t, !isOpen, "there is such a name")
	eventually(t, func() bool { return strings.Contains(written.String(), "redlatch: observe: ") })
	_, _, err := client.Leader(background, "")
	is(t, errors.Is(err, redlatch.ErrInvalid), "%v", err)
	is(t, strings.HasPrefix(err.Error(), "redlatch: leader: "), "%v", err)
	_, err = client.Participants(background, "")
	is(t, errors.Is(err, redlatch.ErrInvalid), "%v", err)
}

func TestAnErrorThatMayPassIsNoEndOfAnObserver(t *testing.T) {
	server := startServer(t)
	client := server.client()
	is(t, server.ask("CONFIG", "SET", "busy-reply-threshold", "1") == "+OK", "no threshold")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = server.tryToAsk("EVAL", "while true do end", "0")
	}()
	isBusy := func() bool {
		_, _, err := client.Leader(background, "x")
		return errors.Is(err, redlatch.ErrServer)
	}
	eventually(t, isBusy)
	leaders := observes(t, client, "x")
	for i := 0; i < 10; i++ { // The observer has most likely asked, too.
		is(t, isBusy(), "it answers while a script runs")
	}
	is(t, server.ask("SCRIPT", "KILL") == "+OK", "the script continues")
	<-ended
	sees(t, leaders, "", 0)
}

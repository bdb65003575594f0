// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlatch.io/redlatch"
)

var errOfTheLeader = errors.New("of the leader")

type leading = func(context.Context, redlatch.Term) error

// leads begins a Lead of the election x.
func leads(ctx context.Context, client *redlatch.Client, work leading,
	options ...redlatch.Option) <-chan error {
	done := make(chan error, 1)
	go func() { done <- client.Lead(ctx, "x", work, options...) }()
	return done
}

// leadsUntil is leads, and returns when it leads. Its work ends with the result of f.
func leadsUntil(ctx context.Context, client *redlatch.Client, f func(context.Context) error,
	options ...redlatch.Option) (redlatch.Term, <-chan error) {
	begun := make(chan redlatch.Term, 1)
	done := leads(ctx, client, func(ctx context.Context, term redlatch.Term) error {
		begun <- term
		return f(ctx)
	}, options...)
	return <-begun, done
}

func mustNotLead(context.Context, redlatch.Term) error { panic("it leads") }

func isUnlocked(server *server) bool { return server.ask("EXISTS", "x") == ":0" }

func isFree(t testing.TB, server *server) {
	t.Helper()
	is(t, isUnlocked(server), "the lock is held")
	is(t, server.ask("EXISTS", "{x}:rl1:q") == ":0", "the queue is not empty")
}

func participantsOf(t testing.TB, client *redlatch.Client) []string {
	t.Helper()
	ids, err := client.Participants(background, "x")
	must(t, err)
	return ids
}

// hasLeader checks the id; "" for none.
func hasLeader(t testing.TB, client *redlatch.Client, id string, term int64) {
	t.Helper()
	leader, isLed, err := client.Leader(background, "x")
	must(t, err)
	is(t, leader.ID == id && leader.Term == term, "%+v", leader)
	is(t, isLed == (id != "") && leader.IsNone() != isLed, "%+v", leader)
}

func TestOneOf64CandidatesLeadsAtATime(t *testing.T) {
	const candidates = 64
	server := startServer(t)
	clients := []*redlatch.Client{server.client(), server.client(), server.client()}
	var inside atomic.Int32
	var mu sync.Mutex
	var numbers []int64
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := 0; i < candidates; i++ {
		all.Add(1)
		client, id := clients[i%len(clients)], fmt.Sprint("candidate ", i)
		go func() {
			defer all.Done()
			<-start
			err := client.Lead(background, "x", func(ctx context.Context, term redlatch.Term) error {
				if inside.Add(1) != 1 {
					t.Error("two lead at a time")
				}
				if !term.IsLeader() || term.ID != id || ctx.Err() != nil {
					t.Errorf("%+v, %v", term, ctx.Err())
				}
				mu.Lock()
				numbers = append(numbers, term.Number)
				mu.Unlock()
				inside.Add(-1)
				return nil
			}, redlatch.CandidateID(id))
			if err != nil {
				t.Error(err)
			}
		}()
	}
	close(start)
	all.Wait()
	is(t, len(numbers) == candidates && slices.IsSorted(numbers), "%v", numbers)
	is(t, len(slices.Compact(numbers)) == candidates, "a number of two terms: %v", numbers)
	isFree(t, server)
}

func TestALossEndsTheTermAndALaterOneBegins(t *testing.T) {
	server := startServer(t)
	client := server.client()
	terms, losses, results := make(chan redlatch.Term), make(chan error), make(chan error)
	lead := leads(background, client, func(ctx context.Context, term redlatch.Term) error {
		if redlatch.LeaseOf(ctx).Fence() != term.Fence() {
			t.Error("it has the lease of another term")
		}
		terms <- term
		select {
		case <-ctx.Done():
			losses <- context.Cause(ctx)
			return <-results
		case result := <-results:
			return result
		}
	}, redlatch.TTL(lossTTL))
	first := <-terms
	must(t, client.ForceReleaseAny(background, "x"))
	cause := <-losses
	is(t, errors.Is(cause, redlatch.ErrLost) && !first.IsLeader(), "%v", cause)
	next, err := server.client().Campaign(background, "x", redlatch.CandidateID("next"))
	must(t, err)
	is(t, slices.Equal(participantsOf(t, client), []string{"next"}), "it campaigns while it works")
	results <- errOfTheLeader // It is ignored.
	eventuallyWaits(t, client, 1)
	must(t, next.Unlock(background))
	second := <-terms
	is(t, first.Number < next.Fence() && next.Fence() < second.Number, "%d, %d, %d", first.Number,
		next.Fence(), second.Number)
	is(t, second.IsLeader() && !first.IsLeader(), "the second term leads")
	results <- nil
	must(t, <-lead)
	is(t, !second.IsLeader(), "it has resigned")
	isFree(t, server)
}

// The server keeps the lock for 1 % of the ttl longer than its leader believes to lead.
func TestATermEndsBeforeItsLeaseCan(t *testing.T) {
	const elections = 16
	server := startServer(t)
	client := server.client()
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	ended := make(chan bool, elections)
	var all sync.WaitGroup
	for i := 0; i < elections; i++ {
		all.Add(1)
		name := fmt.Sprint("election ", i)
		go func() {
			defer all.Done()
			err := client.Lead(ctx, name, func(ctx context.Context, term redlatch.Term) error {
				cause := untilEnd(ctx)
				answer, err := server.tryToAsk("EXISTS", name)
				if err != nil || term.IsLeader() || !errors.Is(cause, redlatch.ErrLost) {
					t.Error(err, term.IsLeader(), cause)
				}
				ended <- answer == ":1"
				return cause
			}, redlatch.TTL(lossTTL), redlatch.NoRenew())
			if err != context.Canceled {
				t.Error(err)
			}
		}()
	}
	inTime := 0
	for i := 0; i < elections; i++ {
		if <-ended {
			inTime++
		}
	}
	cancel()
	all.Wait()
	// On a busy machine some goroutines run too late.
	is(t, inTime > elections/2, "%d of %d terms ended in time", inTime, elections)
}

func TestACancelledCampaignLeavesNoPlaceInTheQueue(t *testing.T) {
	server := startServer(t)
	client := server.client()
	held, err := server.client().Lock(background, "x")
	must(t, err)
	ctx, cancel := context.WithCancelCause(background)
	lead := leads(ctx, client, mustNotLead, redlatch.CandidateID("a"))
	campaign := make(chan error, 1)
	go func() {
		_, err := client.Campaign(ctx, "x", redlatch.CandidateID("a"))
		campaign <- err
	}()
	eventuallyWaits(t, client, 2)
	cancel(errWentAway)
	saysBoth(t, <-lead, context.Canceled)
	saysBoth(t, <-campaign, context.Canceled)
	eventuallyWaits(t, client, 0)
	is(t, len(participantsOf(t, client)) == 0, "none campaigns")
	must(t, held.Unlock(background))
	isFree(t, server)
	saysBoth(t, client.Lead(ctx, "x", mustNotLead), context.Canceled)
}

func TestADeadlineEndsACampaign(t *testing.T) {
	server := startServer(t)
	_, err := server.client().Lock(background, "x")
	must(t, err)
	ctx, cancel := context.WithTimeout(background, 50*time.Millisecond)
	defer cancel()
	err = server.client().Lead(ctx, "x", mustNotLead)
	is(t, err == context.DeadlineExceeded, "%v", err)
	_, err = server.client().Campaign(ctx, "x")
	is(t, errors.Is(err, context.DeadlineExceeded), "%v", err)
}

func TestACancelResignsWhenWorkHasReturned(t *testing.T) {
	for _, one := range []struct {
		name   string
		result error
	}{
		{"nil", nil},
		{"the cause", errWentAway},
		{"the end", context.Canceled},
		{"of the leader", errOfTheLeader},
	} {
		t.Run(one.name, func(t *testing.T) {
			server := startServer(t)
			client := server.client()
			ctx, cancel := context.WithCancelCause(background)
			stopped, finish := make(chan struct{}), make(chan struct{})
			term, lead := leadsUntil(ctx, client, func(ctx context.Context) error {
				<-ctx.Done()
				close(stopped)
				<-finish
				return one.result
			})
			next := leads(background, server.client(), func(context.Context, redlatch.Term) error {
				if term.IsLeader() {
					t.Error("two lead at a time")
				}
				return nil
			})
			eventuallyWaits(t, client, 1)
			cancel(errWentAway)
			<-stopped
			is(t, term.IsLeader(), "it leads until its work has returned")
			close(finish)
			must(t, <-next)
			err := <-lead
			saysBoth(t, err, context.Canceled)
			is(t, errors.Is(err, errOfTheLeader) == (one.result == errOfTheLeader), "%v", err)
			isFree(t, server)
		})
	}
}

func TestACancelIsTheErrorOfItsContext(t *testing.T) {
	client := startServer(t).client()
	ctx, cancel := context.WithCancel(background)
	_, lead := leadsUntil(ctx, client, untilEnd)
	cancel()
	err := <-lead
	is(t, err == context.Canceled, "%v", err)
}

func TestTheResultOfWorkEndsLead(t *testing.T) {
	server := startServer(t)
	client := server.client()
	ofAnotherLock := &redlatch.Error{Op: "lock", Name: "y", Status: redlatch.ErrLost}
	for _, result := range []error{nil, errOfTheLeader, ofAnotherLock, context.Canceled} {
		count := 0
		err := client.Lead(background, "x", func(ctx context.Context, term redlatch.Term) error {
			if count++; count > 1 {
				return errors.New("it leads again")
			}
			return result
		})
		is(t, err == result && count == 1, "%d: %v", count, err)
		isFree(t, server)
	}
}

func TestALossThatTheResignationShowsIsReported(t *testing.T) {
	server := startServer(t)
	client := server.client()
	err := client.Lead(background, "x", func(ctx context.Context, term redlatch.Term) error {
		must(t, client.ForceReleaseAny(background, "x"))
		is(t, term.IsLeader(), "it does not know yet")
		return errOfTheLeader
	})
	is(t, errors.Is(err, redlatch.ErrLost) && errors.Is(err, errOfTheLeader), "%v", err)
}

func TestWorkThatDoesNotReturnResigns(t *testing.T) {
	server := startServer(t)
	client := server.client()
	ended := make(chan any)
	for _, end := range []func(){func() { panic("stop") }, runtime.Goexit} {
		go func(end func()) {
			defer func() { ended <- recover() }()
			_ = client.Lead(background, "x", func(context.Context, redlatch.Term) error {
				end()
				return nil
			})
		}(end)
		cause := <-ended
		is(t, cause == "stop" || cause == nil, "%v", cause)
		isFree(t, server)
	}
}

func TestAnErrorThatMayPassIsNoEndOfACampaign(t *testing.T) {
	server := startServer(t)
	client := server.client()
	is(t, server.ask("SET", "{x}:rl1:f", "no number") == "+OK", "no fence is granted")
	_, err := client.Campaign(background, "x")
	is(t, errors.Is(err, redlatch.ErrServer), "%v", err)
	is(t, server.ask("DEL", "{x}:rl1:e") == ":1", "its id is noted")
	lead := leads(background, client, func(context.Context, redlatch.Term) error {
		return errOfTheLeader
	})
	eventually(t, func() bool { return server.ask("EXISTS", "{x}:rl1:e") == ":1" })
	is(t, server.ask("DEL", "{x}:rl1:f") == ":1", "no fence")
	err = <-lead
	is(t, err == errOfTheLeader, "%v", err)
}

func TestAnOutageIsWaitedForByACampaign(t *testing.T) {
	server := startServer(t)
	client := server.client()
	server.kill()
	lead := leads(background, client, func(context.Context, redlatch.Term) error { return nil })
	eventually(t, func() bool {
		_, err := client.TryLock(background, "y")
		return errors.Is(err, redlatch.ErrUnavailable)
	})
	must(t, server.launch())
	must(t, <-lead)
}

func TestAnErrorThatCannotPassEndsACampaign(t *testing.T) {
	server := startServer(t)
	client := server.client()
	is(t, server.ask("SADD", "y", "member") == ":1", "no set")
	for name, status := range map[string]redlatch.Status{
		"": redlatch.ErrInvalid, "y": redlatch.ErrWrongType,
	} {
		err := client.Lead(background, name, mustNotLead)
		is(t, errors.Is(err, status), "%q: %v", name, err)
		is(t, strings.HasPrefix(err.Error(), "redlatch: campaign"), "%v", err)
	}
	must(t, client.Close())
	err := client.Lead(background, "z", mustNotLead)
	is(t, errors.Is(err, redlatch.ErrClosed), "%v", err)
}

func TestErrorsNameAnInvalidCandidate(t *testing.T) {
	server := startServer(t)
	client := server.client()
	for _, one := range []struct {
		says    string
		options []redlatch.Option
	}{
		{"'id' must be 1 to 256 bytes", []redlatch.Option{redlatch.CandidateID("")}},
		{"'id' must be 1 to 256 bytes",
			[]redlatch.Option{redlatch.CandidateID(strings.Repeat("i", 257))}},
		{"'reentrant' must be no", []redlatch.Option{redlatch.AsReentrant(), redlatch.Owner("o")}},
		{"'format' must be auto or string", []redlatch.Option{redlatch.InFormat(redlatch.FormatHashRW)}},
		{"'mode' must be write", []redlatch.Option{redlatch.Set("mode", "read")}},
		{"'id' must not be set", []redlatch.Option{redlatch.Set("limit", "2")}},
		{"'ttl' must be", []redlatch.Option{redlatch.TTL(time.Millisecond)}},
		{"option 2 must not be nil", []redlatch.Option{redlatch.NoRenew(), nil}},
	} {
		lead := client.Lead(background, "x", mustNotLead, one.options...)
		_, campaign := client.Campaign(background, "x", one.options...)
		for _, err := range []error{lead, campaign} {
			is(t, errors.Is(err, redlatch.ErrInvalid) && strings.Contains(err.Error(), one.says), "%v", err)
			is(t, strings.HasPrefix(err.Error(), "redlatch: campaign"), "%v", err)
		}
	}
	isFree(t, server)
}

func TestCloseEndsATermAndACampaign(t *testing.T) {
	server := startServer(t)
	client := server.client()
	term, lead := leadsUntil(background, client, untilEnd)
	waiting := leads(background, client, mustNotLead)
	eventuallyWaits(t, client, 1)
	must(t, client.Close())
	for _, done := range []<-chan error{lead, waiting} {
		err := <-done
		is(t, errors.Is(err, redlatch.ErrClosed), "%v", err)
	}
	is(t, !term.IsLeader(), "it leads after Close")
	isFree(t, server)
}

func TestTheDefaultIDIsThatOfThePodOrTheProcess(t *testing.T) {
	client := startServer(t).client()
	host, err := os.Hostname()
	must(t, err)
	process := fmt.Sprint(host, ":", os.Getpid())
	for _, one := range []struct{ pod, id string }{{"pod-7", "pod-7"}, {"", process}} {
		t.Setenv("POD_NAME", one.pod)
		must(t, client.Lead(background, "x", func(ctx context.Context, term redlatch.Term) error {
			is(t, term.ID == one.id, "%q", term.ID)
			hasLeader(t, client, one.id, term.Number)
			return nil
		}))
	}
	t.Setenv("POD_NAME", strings.Repeat("p", 257))
	err = client.Lead(background, "x", mustNotLead)
	is(t, errors.Is(err, redlatch.ErrInvalid), "%v", err)
	id := redlatch.CandidateID("\x00\xff 'any' bytes")
	err = client.Lead(background, "x", func(ctx context.Context, term redlatch.Term) error {
		hasLeader(t, client, "\x00\xff 'any' bytes", term.Number)
		return nil
	}, id)
	must(t, err)
}

func TestParticipantsAreTheLeaderAndThoseThatWait(t *testing.T) {
	server := startServer(t)
	client := server.client()
	is(t, len(participantsOf(t, client)) == 0, "none campaigns")
	hasLeader(t, client, "", 0)
	first, err := client.Campaign(background, "x", redlatch.CandidateID("first"))
	must(t, err)
	hasLeader(t, client, "first", first.Fence())
	var waiting []<-chan error
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	for i, id := range []string{"second", "third"} {
		waiting = append(waiting, leads(ctx, client, func(ctx context.Context, term redlatch.Term) error {
			return untilEnd(ctx)
		}, redlatch.CandidateID(id)))
		eventuallyWaits(t, client, int64(i+1))
	}
	all := participantsOf(t, server.client())
	is(t, slices.Equal(all, []string{"first", "second", "third"}), "%q", all)
	must(t, first.Unlock(background))
	eventually(t, func() bool {
		leader, isLed, err := client.Leader(background, "x")
		return err == nil && isLed && leader.ID == "second" && leader.Term > first.Fence() &&
			time.Since(leader.Since).Abs() < patience
	})
	cancel()
	for _, done := range waiting {
		is(t, <-done == context.Canceled, "they are cancelled")
	}
	// The resignation may grant the lock to the other one, which the client then gives back.
	eventually(t, func() bool { return isUnlocked(server) })
	isFree(t, server)
}

func TestAHolderWithoutAnIDIsNoLeader(t *testing.T) {
	server := startServer(t)
	client := server.client()
	held, err := client.Lock(background, "x")
	must(t, err)
	hasLeader(t, client, "", 0)
	lead := leads(background, server.client(), func(context.Context, redlatch.Term) error {
		_, err := client.TryLock(background, "x")
		if !errors.Is(err, redlatch.ErrBusy) {
			t.Error(err)
		}
		return nil
	}, redlatch.CandidateID("a"))
	eventuallyWaits(t, client, 1)
	all := participantsOf(t, client)
	is(t, slices.Equal(all, []string{"a"}), "%q", all)
	must(t, held.Unlock(background))
	must(t, <-lead)
	must(t, client.Do(background, "x", func(context.Context) error {
		hasLeader(t, client, "", 0)
		return nil
	}))
}

func TestARedlockHasNoElections(t *testing.T) {
	redlock, err := redlatch.OpenRedlock([]string{"unix:///a", "unix:///b", "unix:///c"})
	must(t, err)
	defer redlock.Close()
	_, campaigns := any(redlock).(interface {
		Campaign(context.Context, string, ...redlatch.Option) (*redlatch.Lease, error)
	})
	is(t, !campaigns, "its servers have no leader together")
	_, err = redlock.TryLock(background, "x", redlatch.CandidateID("a"))
	is(t, errors.Is(err, redlatch.ErrUnsupported), "%v", err)
}

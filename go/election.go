// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strconv"
	"time"

	"redlatch.io/redlatch/internal/rlc"
)

// CandidateID sets the id of a candidate in an election, which others read while it waits and while
// it leads. Allowed: 1 to 256 bytes. Default of Lead and Campaign: the environment variable
// POD_NAME if it is set and not empty, else HOST:PID. Ids need not differ: the token of the lease
// tells candidates apart.
func CandidateID(id string) Option { return Set("id", id) }

// Term is the time in which a candidate leads. Any goroutine may use it.
type Term struct {
	ID     string // of the candidate
	Number int64  // of the term; it rises from leader to leader

	lease *Lease
}

// IsLeader reports whether the candidate still leads, by the local clock. It sends nothing, and is
// false before another candidate can lead. A term that has ended never leads again.
func (t Term) IsLeader() bool { return t.lease != nil && t.lease.State() == StateHeld }

// Fence returns the fencing number of the term, which is Number: pass it to the resource that you
// write to, and let the resource refuse a lower one.
func (t Term) Fence() int64 { return t.Number }

// Lead campaigns in the election name, and runs work when this candidate leads. It waits in the
// queue until ctx ends, also during an outage of the server.
//
// The context of work ends with ctx, or with the cause ErrLost when the term is lost, before
// another candidate can lead; [LeaseOf] returns the lease of the term. Lead waits until work has
// returned, also after a loss. Another candidate may lead meanwhile, and only a resource that
// refuses lower fences stops the writes of work. Then Lead ignores the result of work, campaigns
// again, and runs work once more with the next term.
//
// If another client asks the leader to resign ([Client.Resign]), the context of work ends with the
// cause ErrRecalled. Lead waits until work has returned, and resigns. If work returned nil, or an
// error that is context.Canceled or ErrRecalled, Lead pauses as after a loss, and campaigns again,
// behind the candidates that wait. Any other error is the result.
//
// Lead pauses after a loss, and after an error of a campaign that may pass (see
// [Status.Retryable]): 1 s, then twice as long each time, at most 30 s. A term that lasted longer
// than 30 s sets the pause back to 1 s.
//
// The election is the lock of Lock of that name: a holder without an id excludes all leaders. The
// options are those of the acquisition; the range of the id is that of [CandidateID]. A Lead of the
// same name in work would wait for itself. Lead resigns before it returns, also if work panics.
// The result is
//
//   - That of work, nil or an error unchanged, if work returned while it led, and not because of a
//     recall. ErrLost is joined if the resignation shows that the term was lost before; ErrClosed
//     if Close ended it.
//   - ctx.Err(), if ctx has ended; with a cause of your own, errors.Is finds both. Another error of
//     work is joined.
//   - ErrInvalid: the name or an option. ErrDenied, ErrClosed, and other errors of Lock that cannot
//     pass: it did not lead.
func (c *Client) Lead(ctx context.Context, name string,
	work func(ctx context.Context, term Term) error, options ...Option) error {
	defer runtime.KeepAlive(c)
	run, err := c.newCandidacy(name, options)
	if err != nil {
		return err
	}
	var delays backOff
	for {
		end := run.serve(ctx, work)
		switch {
		case end.isCancelled:
			return endOfLead(ctx, end.err)
		case !end.mayPass:
			return end.err
		}
		c.common.pause(ctx, delays.after(end.lasted))
	}
}

// Campaign waits until this candidate leads the election name, or ctx ends. The term is the lease:
// its Fence is the number of the term, Check tells whether it leads, Context ends with the term,
// and Unlock resigns. Lead does this, and campaigns again after a loss. Otherwise as Lock, with the
// same errors; CandidateID sets the id.
func (c *Client) Campaign(ctx context.Context, name string, options ...Option) (*Lease, error) {
	defer runtime.KeepAlive(c)
	run, err := c.newCandidacy(name, options)
	if err != nil {
		return nil, err
	}
	return run.campaign(ctx)
}

const campaignOp = "campaign"

// candidacy has the arguments of one Lead or Campaign.
type candidacy struct {
	client  *Client
	name    string
	id      string
	options []Option
}

func (c *Client) newCandidacy(name string, options []Option) (*candidacy, error) {
	run := &candidacy{client: c, name: name, options: []Option{CandidateID(defaultID())}}
	for i, option := range options {
		if option == nil {
			return nil, about(nilOption(i), campaignOp, name)
		}
		run.options = append(run.options, option)
	}
	made, err := makeOptions(run.options)
	if err != nil {
		return nil, about(err, campaignOp, name)
	}
	defer rlc.Acquire_options_free(made)
	run.id = text(func(buffer []byte) int64 { return rlc.Acquire_options_get(made, "id", buffer) })
	return run, nil
}

func defaultID() string {
	if pod := os.Getenv("POD_NAME"); pod != "" {
		return pod
	}
	host, _ := os.Hostname()
	return host + ":" + strconv.Itoa(os.Getpid())
}

// campaign does not report a wait for the client's own lease: candidates of one client are supposed
// to wait for each other.
func (r *candidacy) campaign(ctx context.Context) (*Lease, error) {
	c := r.client
	lease, err := c.common.acquire(ctx, c, campaignOp, r.name, waitMs(ctx), r.options, c.startLock)
	if err == nil {
		c.common.own.add(r.name, lease.hold)
	}
	return lease, err
}

// endOfTerm is how a campaign and its term ended.
type endOfTerm struct {
	err         error
	isCancelled bool // ctx had ended before; err is not that of the campaign then
	mayPass     bool // the candidate may campaign again
	lasted      time.Duration
}

// serve campaigns, and leads for one term.
func (r *candidacy) serve(ctx context.Context,
	work func(ctx context.Context, term Term) error) endOfTerm {
	lease, err := r.campaign(ctx)
	if err != nil && ctx.Err() != nil {
		return endOfTerm{isCancelled: true}
	}
	if err != nil {
		status := statusOf(err)
		return endOfTerm{err: err, mayPass: status.Retryable() || status == ErrLost}
	}
	var end endOfTerm
	begun := time.Now()
	end.err = lease.during(ctx, func(inside context.Context) error {
		inside, finish := lease.untilRecalled(inside)
		defer finish()
		failure := work(inside, Term{ID: r.id, Number: lease.Fence(), lease: lease})
		end.isCancelled = ctx.Err() != nil
		end.mayPass = finish() && isOfRecall(failure) || lease.State() == StateLost
		return failure
	}, func(bool) error { return lease.unlockAfterWork(ctx) })
	end.lasted = time.Since(begun)
	return end
}

// endOfLead returns the error of a Lead whose ctx has ended; err is that of work.
func endOfLead(ctx context.Context, err error) error {
	ended := causeOf(ctx)
	if err == nil || errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)) {
		return ended
	}
	return errors.Join(ended, err)
}

const (
	shortestPause = time.Second
	longestPause  = 30 * time.Second
)

// backOff gives the pauses between attempts.
type backOff struct{ next time.Duration }

// after returns the pause after an attempt that led to a term of this length; 0: to none.
func (b *backOff) after(lasted time.Duration) time.Duration {
	if b.next == 0 || lasted > longestPause {
		b.next = shortestPause
	}
	pause := b.next
	b.next = min(2*pause, longestPause)
	return pause
}

// pause ends sooner with ctx, or with Close.
func (s *common) pause(ctx context.Context, length time.Duration) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-s.ended:
	}
}

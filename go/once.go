// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"context"
	"runtime"
	"time"

	"redlatch.io/redlatch/internal/rlc"
)

// OnceOption is an option of Once: Key, Tries, SkipIfBusy, or an Option of the acquisition, such as
// TTL.
type OnceOption interface{ setOnce(job *onceJob) }

type onceSetting func(job *onceJob)

func (s onceSetting) setOnce(job *onceJob) { s(job) }

func (o Option) setOnce(job *onceJob) { job.options = append(job.options, o) }

// Key names the period, such as "2026-11-30": Once runs once for each text, and remembers a success
// for the whole of every. Allowed: at most 256 bytes. Default: "", none.
func Key(text string) OnceOption {
	return onceSetting(func(job *onceJob) { job.key = text })
}

// Tries sets the most runs of a period, if they fail. Default: 3.
func Tries(most int32) OnceOption {
	return onceSetting(func(job *onceJob) { job.tries = most })
}

// SkipIfBusy skips the run, instead of a wait, while another holder has the lock.
func SkipIfBusy() OnceOption {
	return onceSetting(func(job *onceJob) { job.isSkippedIfBusy = true })
}

// Once runs f unless a run of the job name has succeeded in this period, on any host. The period
// begins with its first run, and every is its length: at most 366 days. A success is remembered
// for 90 % of it by the server's clock, because schedulers may start some ms early.
//
// A run holds the lock of Lock of that name, and has its lease. While another run is under way,
// Once waits for its end until ctx ends. The context of f ends as that of Do, with ctx or the
// lease. A run has failed if f returns an error or panics, the lease is lost, or the process dies:
// then the next caller runs, as long as there are Tries. A Once of the same name in f would wait
// for itself.
//
// A failover, a restart without data or an eviction may lose the memory of the server: then the job
// may run twice in a period. nil means that f has succeeded. Errors:
//
//   - ErrSkipped: f did not run. A run of this period has succeeded, or the tries are used up; the
//     message says which. Or the lock is busy, with SkipIfBusy.
//   - That of f, unchanged. ErrLost and ErrClosed are joined to it, as in Do; also if f returned
//     nil, because the run has failed then.
//   - ErrServer, ErrDenied: f did not run, or it has succeeded and the server could not note that.
//   - ErrOutcomeUnknown: f did not run, and the server may have counted a try.
//   - Those of Lock, if f did not run, and ErrInvalid: every, an option, or too many keys.
func (c *Client) Once(ctx context.Context, name string, every time.Duration,
	f func(ctx context.Context, lease *Lease) error, options ...OnceOption) error {
	defer runtime.KeepAlive(c)
	job, err := newOnceJob(every, options)
	if err != nil {
		return about(err, onceOp, name)
	}
	lease, err := job.acquire(ctx, c, name)
	if err != nil {
		return err
	}
	if err := job.begin(ctx, lease); err != nil {
		_ = lease.unlockAfterWork(ctx) // f did not run: err says all.
		return err
	}
	work := func(ctx context.Context) error { return f(ctx, lease) }
	return lease.during(ctx, work, func(hasSucceeded bool) error {
		if hasSucceeded {
			return job.done(ctx, lease)
		}
		return lease.unlockAfterWork(ctx)
	})
}

// OnceForget forgets the runs of the job name in all its periods, so that the next caller runs. For
// operators. A run that is under way continues, and its success counts only for callers that
// wait for it. It is no error if no run is remembered.
func (c *Client) OnceForget(ctx context.Context, name string) error {
	return c.change(ctx, "once-forget", name, func() rlc.Request {
		return rlc.Once_forget_start(c.handle, name)
	})
}

// IsDone reports whether a run of the period has succeeded.
func (m Mark) IsDone() bool { return m.Done != 0 }

const (
	onceOp       = "once"
	defaultTries = 3
)

// onceJob has the arguments of one Once.
type onceJob struct {
	everyMs         int64
	key             string
	tries           int32
	isSkippedIfBusy bool
	options         []Option
}

func newOnceJob(every time.Duration, options []OnceOption) (*onceJob, error) {
	job := &onceJob{everyMs: wholeMs(every), tries: defaultTries}
	for i, option := range options {
		if plain, ok := option.(Option); option == nil || ok && plain == nil {
			return nil, nilOption(i)
		}
		option.setOnce(job)
	}
	// A local hand-off would let several callers share a run.
	job.options = append(job.options, MaxLocalHandoffs(0))
	return job, nil
}

func (j *onceJob) acquire(ctx context.Context, c *Client, name string) (*Lease, error) {
	wait := waitMs(ctx)
	if j.isSkippedIfBusy {
		wait = noWait
	}
	lease, err := c.common.take(ctx, c, onceOp, name, wait, j.options, c.startLock)
	if err != nil && j.isSkippedIfBusy && statusOf(err) == ErrBusy {
		return nil, &Error{Op: onceOp, Name: name, Status: ErrSkipped, Message: "the lock is busy"}
	}
	return lease, err
}

func (j *onceJob) begin(ctx context.Context, lease *Lease) error {
	return lease.unlessEnded(ctx, onceOp, noWait, func(handle rlc.Lease) rlc.Request {
		return rlc.Once_begin_start(handle, j.key, j.everyMs, int(j.tries))
	})
}

// done notes the success and releases the lease, in one step.
func (j *onceJob) done(ctx context.Context, lease *Lease) error {
	return lease.finishAfterWork(ctx, onceOp, func(handle rlc.Lease) rlc.Request {
		return rlc.Once_done_start(handle, j.key)
	})
}

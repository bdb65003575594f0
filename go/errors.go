// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"redlatch.io/redlatch/internal/rlc"
)

// Status says how a call ended: OK, an answer that is not yes (above 0), or a failure (below). Each
// is an error, so that errors.Is(err, redlatch.ErrLost) asks for it. Branch on statuses and show
// messages: messages may change, statuses do not.
type Status int32

// Error is the text of the status, without what it was about.
func (s Status) Error() string { return "redlatch: " + s.Text() }

// Text says what the status means, in a sentence.
func (s Status) Text() string { return rlc.Status_text(int(s)) }

// String is the name of the status: "BUSY", "E_LOST".
func (s Status) String() string {
	if name, ok := statusNames[s]; ok {
		return name
	}
	return fmt.Sprintf("UNKNOWN(%d)", int32(s))
}

// Retryable says whether the same call may succeed later.
func (s Status) Retryable() bool { return rlc.Status_is(int(s), rlc.RL_RETRYABLE) != 0 }

// MaybeApplied says whether the server may have carried it out.
func (s Status) MaybeApplied() bool { return rlc.Status_is(int(s), rlc.RL_MAYBE_APPLIED) != 0 }

// Error is what went wrong with one call. errors.Is finds its Status, and what ended the context.
// A wait that ran out is ErrTimeout, and ErrBusy as well.
type Error struct {
	Op      string // what was called, such as "lock"
	Name    string // the lock, if it was about one
	Status  Status
	Message string // one line, which may hold what the server said; never a password
	Cause   error  // context.Cause of the context, if that ended the call

	ended error // what Err of that context says
}

// endedError is that of a call that ctx has ended.
func endedError(ctx context.Context, op, name string, status Status) *Error {
	return &Error{Op: op, Name: name, Status: status, Cause: context.Cause(ctx), ended: ctx.Err()}
}

func (e *Error) Error() string {
	what := e.Message
	if what == "" {
		what = e.Status.Text()
	}
	text := "redlatch: " + e.Op
	// Most of what the library says names the lock already.
	if e.Name != "" && !strings.Contains(what, quoted(e.Name)) {
		text += " " + quoted(e.Name)
	}
	text += ": " + what
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// quoted is a name as the library shows it: in one line, and shortened if it is long.
func quoted(name string) string {
	const most = 64
	var shown strings.Builder
	shown.WriteByte('\'')
	for i := 0; i < min(len(name), most); i++ {
		if c := name[i]; c < 0x20 || c >= 0x7f || c == '\'' || c == '\\' {
			fmt.Fprintf(&shown, "\\x%02x", c)
		} else {
			shown.WriteByte(c)
		}
	}
	shown.WriteByte('\'')
	if len(name) > most {
		shown.WriteString("..")
	}
	return shown.String()
}

// Unwrap gives errors.Is the status, the cause, and context.Canceled or DeadlineExceeded beside it.
func (e *Error) Unwrap() []error {
	found := []error{e.Status}
	if e.Status == ErrTimeout {
		found = append(found, ErrBusy)
	}
	if e.Cause != nil {
		found = append(found, e.Cause)
	}
	if e.ended != nil && e.ended != e.Cause {
		found = append(found, e.ended)
	}
	return found
}

// A wait in the library ends a little before the context that has given it its limit: see waitMs.
const deadlineSlack = 3 * time.Millisecond

// endedBy notes what ended ctx, if that is why the call ended.
func (e *Error) endedBy(ctx context.Context) {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < deadlineSlack {
		<-ctx.Done()
	}
	e.Cause, e.ended = context.Cause(ctx), ctx.Err()
}

// call has an error of the C library for one call, and makes it one of Go's.
type call struct {
	op, name string
	handle   rlc.Error
}

func newCall(op, name string) call { return call{op, name, rlc.Error_new()} }

func (c call) free() { rlc.Error_free(c.handle) }

func (c call) failure() *Error {
	status := Status(rlc.Error_status(c.handle))
	if c.handle == 0 {
		status = ErrNoMemory
	}
	return &Error{Op: c.op, Name: c.name, Status: status, Message: rlc.Error_message(c.handle)}
}

// statusOf is the status that err came with; ErrInternal if it is not one of ours.
func statusOf(err error) Status {
	var found *Error
	if errors.As(err, &found) {
		return found.Status
	}
	return ErrInternal
}

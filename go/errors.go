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

// Status is the result of a call: OK, an answer that is not yes (above 0), or a failure (below 0).
// Each is an error: errors.Is(err, redlatch.ErrLost) asks for it. Branch on statuses and show
// messages: messages may change, statuses do not.
type Status int32

// Error returns the text of the status, without the name of the lock.
func (s Status) Error() string { return "redlatch: " + s.Text() }

// Text returns the meaning of the status, in a sentence.
func (s Status) Text() string { return rlc.Status_text(int(s)) }

// String returns the name of the status: "BUSY", "E_LOST".
func (s Status) String() string {
	if name, ok := statusNames[s]; ok {
		return name
	}
	return fmt.Sprintf("UNKNOWN(%d)", int32(s))
}

// Retryable reports whether the same call may succeed later.
func (s Status) Retryable() bool { return rlc.Status_is(int(s), rlc.RL_RETRYABLE) != 0 }

// MaybeApplied reports whether the server may have carried out the call.
func (s Status) MaybeApplied() bool { return rlc.Status_is(int(s), rlc.RL_MAYBE_APPLIED) != 0 }

// Error is the error of one call. errors.Is finds its Status, and the cause of the context that
// ended it. A wait that timed out is ErrTimeout, and ErrBusy as well.
type Error struct {
	Op      string // the call, such as "lock"
	Name    string // the lock, if it was about one
	Status  Status
	Message string // one line, maybe with words of the server; never a password
	Cause   error  // context.Cause of the context, if that ended the call

	ended error // the result of Err of that context
}

// endedError returns the error of a call that ctx has ended.
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

// quoted returns a name as the library shows it: in one line, and shortened if it is long.
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

// Unwrap returns the status, the cause, and context.Canceled or DeadlineExceeded beside it, for
// errors.Is.
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

// endedBy notes the cause of ctx, if that is why the call ended.
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

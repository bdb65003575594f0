// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// The Go runner of the conformance suite: reads a line, does it, prints a line; SPEC.md says what
// the lines mean. Locks are taken and given back by the surface that users have: contexts say how
// long to wait, and end what was started. REDLATCH_RUNNER_DEFECT plants a defect (defects.go).
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"redlatch.io/redlatch"
)

const longestLine = 1 << 20

// values are the arguments of a line, any bytes.
type values map[string]string

// answer is how an operation went, and what it has to show.
type answer struct {
	status redlatch.Status
	shown  []string
}

var (
	locks = map[string]*lock{}
	jobs  = map[string]chan string{}
)

// ---- values -------------------------------------------------------------------------------------

func (v values) number(key string) int64 {
	number, _ := strconv.ParseInt(v[key], 10, 64)
	return number
}

func (v values) duration(key string) time.Duration { return milliseconds(v[key]) }

// milliseconds is the longest duration for what is longer than any: 292 years.
func milliseconds(text string) time.Duration {
	count, _ := strconv.ParseInt(text, 10, 64)
	if count > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(count) * time.Millisecond
}

// context is one that ends when the wait is over; -1 is never. A try needs no limit.
func (v values) context() (context.Context, context.CancelFunc) {
	if v.number("wait_ms") <= 0 {
		return context.WithCancel(context.Background())
	}
	return context.WithTimeout(context.Background(), v.duration("wait_ms"))
}

// A context has no length that is below 0.
func (v values) isBadWait() bool { return v.number("wait_ms") < -1 }

func (v values) isTry() bool { return v.number("wait_ms") == 0 }

func decode(text string) string {
	decoded, err := url.PathUnescape(text)
	if err != nil {
		panic(err)
	}
	return decoded
}

func encode(text string) string {
	var encoded strings.Builder
	for i := 0; i < len(text); i++ {
		if c := text[i]; c > ' ' && c < 0x7f && c != '%' {
			encoded.WriteByte(c)
		} else {
			fmt.Fprintf(&encoded, "%%%02x", c)
		}
	}
	return encoded.String()
}

// ---- answers ------------------------------------------------------------------------------------

func answered(err error) answer { return answer{status: statusOf(err)} }

func (a *answer) add(key string, value any) {
	a.shown = append(a.shown, key+"="+encode(fmt.Sprint(value)))
}

func (a *answer) String() string {
	return strings.Join(append([]string{mistaken(a.status).String()}, a.shown...), " ")
}

// statusOf is what an error says. That the time of a context was over is Go's word for TIMEOUT.
func statusOf(err error) redlatch.Status {
	var failure *redlatch.Error
	switch {
	case err == nil:
		return redlatch.OK
	case !errors.As(err, &failure):
		panic(err)
	case failure.Status == redlatch.ErrCancelled && errors.Is(err, context.DeadlineExceeded):
		return redlatch.ErrTimeout
	case !errors.Is(err, failure.Status):
		panic(err)
	}
	return failure.Status
}

// ---- lines --------------------------------------------------------------------------------------

// do does it, to l if it is not for the client, and says how it went.
func do(l *lock, op string, v values) string {
	if _, isWaiting := v["wait_ms"]; isWaiting && v.isBadWait() {
		return redlatch.ErrInvalid.String()
	}
	var done answer
	if work, ok := ofClient[op]; ok && l == nil {
		done = work(v)
	} else if work, ok := ofLock[op]; ok && l != nil {
		done = work(l, v)
	} else {
		return "UNKNOWN"
	}
	return done.String()
}

// run does a line, or starts it in a goroutine of its own, or waits for what was started.
func run(line string) string {
	words := strings.Fields(line)
	target, op, job := words[0], words[1], ""
	v := values{}
	for _, word := range words[2:] {
		if key, value, isPair := strings.Cut(word, "="); isPair {
			v[key] = decode(value)
		} else {
			job = word
		}
	}
	switch {
	case job == "":
		return do(locks[target], op, v)
	case op == "wait":
		defer delete(jobs, job)
		return <-jobs[job]
	}
	done := make(chan string, 1)
	jobs[job] = done
	go func(l *lock) { done <- do(l, op, v) }(locks[target])
	return "STARTED"
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		fmt.Println(run(lines.Text()))
	}
	doShutdown(nil) // Ends the waits of the jobs.
	for _, job := range jobs {
		<-job
	}
	for _, l := range locks {
		if l.started != nil {
			<-l.started.done
		}
	}
}

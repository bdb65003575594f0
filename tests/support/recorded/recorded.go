// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// Package recorded is for Go programs that tests start: what they call of redlatch is written down,
// as record.h does it for programs in C. tests/history/README.md says what the records mean.
//
//	record := recorded.Open()
//	lease, err := record.Acquire(recorded.Words{"name": name}, func() (*redlatch.Lease, error) {
//		return client.Lock(ctx, name)
//	})
package recorded

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"sort"
	"strings"
	"sync/atomic"
	"syscall"
	"unsafe"

	"redlatch.io/redlatch"
)

// Words are the keys and the values of a record.
type Words map[string]string

// What an acquisition has that says nothing else.
var defaults = Words{"lease_ms": "30000", "burst": "16", "renew": "1", "mode": "write"}

var outcomes = map[redlatch.Status]string{
	redlatch.OK:                "ok",
	redlatch.ErrBusy:           "busy",
	redlatch.ErrTimeout:        "timeout",
	redlatch.ErrCancelled:      "cancelled",
	redlatch.ErrStillHeld:      "still_held",
	redlatch.ErrLost:           "lost",
	redlatch.ErrNotHeld:        "not_held",
	redlatch.ErrDeadlock:       "deadlock",
	redlatch.ErrAlreadyHeld:    "already_held",
	redlatch.ErrOutcomeUnknown: "unknown",
}

// Record is the file of this process; each record is one write. Without a file it writes nothing.
type Record struct {
	file *os.File
	last atomic.Int64
}

// Open gives a record that does nothing, unless REDLATCH_HISTORY names a folder.
func Open() *Record {
	folder := os.Getenv("REDLATCH_HISTORY")
	if folder == "" {
		return &Record{}
	}
	path := fmt.Sprintf("%s/%d.log", folder, os.Getpid())
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		panic(err)
	}
	return &Record{file: file}
}

// Acquire does what takes a lock; the words say what the library was told.
func (r *Record) Acquire(words Words,
	take func() (*redlatch.Lease, error)) (*redlatch.Lease, error) {
	return r.take("acquire", with(defaults, words), take)
}

// Attach does what goes on with a lease.
func (r *Record) Attach(words Words,
	attach func() (*redlatch.Lease, error)) (*redlatch.Lease, error) {
	return r.take("attach", with(Words{"lease_ms": defaults["lease_ms"]}, words), attach)
}

func (r *Record) take(op string, words Words,
	take func() (*redlatch.Lease, error)) (*redlatch.Lease, error) {
	if r.file == nil {
		return take()
	}
	id := r.call(op, words)
	lease, err := take()
	r.returned(id, err, lease)
	return lease, err
}

// Change does what changes a lease: extend, upgrade or downgrade.
func (r *Record) Change(op string, lease *redlatch.Lease, words Words, change func() error) error {
	if r.file == nil {
		return change()
	}
	id := r.call(op, with(describe(lease), words))
	err := change()
	r.returned(id, err, lease)
	return err
}

// Release does what gives a lease back, and says whether the lock is free.
func (r *Record) Release(lease *redlatch.Lease, release func() (bool, error)) (bool, error) {
	if r.file == nil {
		return release()
	}
	id := r.call("release", describe(lease))
	free, err := release()
	if err == nil && !free {
		r.returned(id, redlatch.ErrStillHeld, nil)
	} else {
		r.returned(id, err, nil)
	}
	return free, err
}

// Force does what takes a lock away from whoever has it.
func (r *Record) Force(name string, force func() error) error {
	if r.file == nil {
		return force()
	}
	id := r.call("force", Words{"name": name})
	err := force()
	r.returned(id, err, nil)
	return err
}

// Detach does what hands a lease over, and answers its token.
func (r *Record) Detach(lease *redlatch.Lease, detach func() (string, error)) (string, error) {
	if r.file == nil {
		return detach()
	}
	id := r.call("detach", describe(lease))
	token, err := detach()
	r.returned(id, err, nil)
	return token, err
}

// Close is about to happen to a client.
func (r *Record) Close(client string) {
	if r.file != nil {
		r.call("close", Words{"client": client})
	}
}

// Look says what a lease is like now.
func (r *Record) Look(lease *redlatch.Lease) {
	if r.file != nil {
		said := describe(lease)
		r.put("look %d %d %v\n", os.Getpid(), monotonicNs(), said)
	}
}

// ---- records ----

// call gives the number that the return of this call must name.
func (r *Record) call(op string, words Words) string {
	id := fmt.Sprintf("%d.%d", os.Getpid(), r.last.Add(1))
	r.put("call %s %d %s %v\n", id, monotonicNs(), op, words)
	return id
}

// returned writes down how a call ended; lease is what was granted or changed, if it went well.
func (r *Record) returned(id string, err error, lease *redlatch.Lease) {
	now := monotonicNs()
	words := Words{}
	if err == nil && lease != nil {
		words = describe(lease)
		words["mode"] = strings.ToLower(lease.Mode().String())
		words["holds"] = fmt.Sprint(lease.HoldCount())
	}
	r.put("return %s %d %s %v\n", id, now, outcomeOf(err), words)
}

func (r *Record) put(format string, values ...any) {
	if _, err := fmt.Fprintf(r.file, format, values...); err != nil {
		panic(err)
	}
}

func outcomeOf(err error) string {
	status := redlatch.OK
	var failure *redlatch.Error
	if errors.As(err, &failure) {
		status = failure.Status
	} else if err != nil && !errors.As(err, &status) {
		return "error"
	}
	if outcome, ok := outcomes[status]; ok {
		return outcome
	}
	return "error"
}

// describe says who it is, and until when it is believed by the local clock; 0 is not any more.
func describe(lease *redlatch.Lease) Words {
	until := monotonicNs()
	if remaining := lease.Remaining(); remaining > 0 {
		until += remaining.Nanoseconds()
	} else {
		until = 0
	}
	return Words{"token": lease.Token(), "fence": fmt.Sprint(lease.Fence()),
		"until": fmt.Sprint(until)}
}

func with(words, more Words) Words {
	all := Words{}
	for _, some := range []Words{words, more} {
		for key, value := range some {
			all[key] = value
		}
	}
	return all
}

func (w Words) String() string {
	var pairs []string
	for key, value := range w {
		pairs = append(pairs, key+"="+url.PathEscape(value))
	}
	sort.Strings(pairs)
	return strings.Join(pairs, " ")
}

// monotonicNs is CLOCK_MONOTONIC, which all processes of a host share: Go's own clock has another
// beginning in each.
func monotonicNs() int64 {
	const clockMonotonic = 1
	var now syscall.Timespec
	_, _, failure := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic,
		uintptr(unsafe.Pointer(&now)), 0)
	if failure != 0 {
		panic(failure)
	}
	return now.Nano()
}

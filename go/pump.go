// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"redlatch.io/redlatch/internal/rlc"
)

const (
	// Most calls are answered by then: one whose context ends sooner still learns how it went.
	answerTime = 2 * time.Millisecond
	// How often a goroutine that had to wait in its thread looks at its context.
	lookMs = 2
)

// pump wakes what waits in a queue of the library: one goroutine in Go's poller, however many wait.
// That goroutine reads for the client as well, so that no thread is woken for an answer. It is
// started by the first watch, and ends when it was closed and nothing waits any more.
type pump struct {
	drive    func(rlc.Queue) // has the queue read for the client; nil: it cannot
	mu       sync.Mutex
	queue    rlc.Queue
	file     *os.File // a descriptor of our own for the queue's
	wakes    map[int64]func()
	last     int64 // a tag is used once
	isClosed bool
}

// watch calls wake when the event that register watches has happened. OK, or the reason why it
// cannot; then wake is never called.
func (p *pump) watch(register func(rlc.Queue, int64) int, wake func()) (int64, Status) {
	queue, tag := p.admit(wake)
	if tag == 0 {
		return 0, ErrNoMemory
	}
	status := Status(register(queue, tag)) // The queue is there as long as the tag is.
	if status != OK {
		p.forget(tag)
	}
	return tag, status
}

// admit gives a tag; 0 if there can be no queue.
func (p *pump) admit(wake func()) (rlc.Queue, int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil && !p.start() {
		return 0, 0
	}
	p.last++
	p.wakes[p.last] = wake
	return p.queue, p.last
}

// forget makes sure that the wake of tag is not called from now on, unless it is being called.
func (p *pump) forget(tag int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.wakes, tag)
	p.endIfUnused()
}

func (p *pump) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isClosed = true
	p.endIfUnused()
}

func (p *pump) start() bool {
	p.queue = rlc.Queue_new(0)
	if p.queue == 0 {
		return false
	}
	if p.drive != nil {
		p.drive(p.queue)
	}
	// os.File closes what it is given, and the queue's own descriptor is the queue's.
	copied, _, failure := syscall.Syscall(syscall.SYS_FCNTL, uintptr(rlc.Queue_fd(p.queue)),
		syscall.F_DUPFD_CLOEXEC, 0)
	if failure != 0 {
		rlc.Queue_free(p.queue)
		return false
	}
	file := os.NewFile(copied, "redlatch queue")
	if file.SetReadDeadline(time.Time{}) != nil { // The poller has no room for it.
		_ = file.Close()
		rlc.Queue_free(p.queue)
		return false
	}
	p.file = file
	if p.wakes == nil {
		p.wakes = make(map[int64]func())
	}
	go p.run(p.file, p.queue)
	return true
}

// endIfUnused lets run() end. Tags that are still posted to that queue have no receiver.
func (p *pump) endIfUnused() {
	if !p.isClosed || len(p.wakes) > 0 || p.file == nil {
		return
	}
	_ = p.file.SetReadDeadline(time.Unix(1, 0))
	p.file, p.queue = nil, 0
}

func (p *pump) run(file *os.File, queue rlc.Queue) {
	// The poller tells of changes only, so that each look takes all there is. This ends with an
	// error, when the deadline of endIfUnused() is over.
	if conn, err := file.SyscallConn(); err == nil {
		_ = conn.Read(func(uintptr) bool {
			p.wakeAll(queue)
			return false
		})
	}
	_ = file.Close()
	rlc.Queue_free(queue)
}

func (p *pump) wakeAll(queue rlc.Queue) {
	for {
		tag := rlc.Queue_next(queue, 0)
		if tag == 0 {
			return
		}
		p.mu.Lock()
		wake := p.wakes[tag]
		delete(p.wakes, tag)
		p.endIfUnused()
		p.mu.Unlock()
		if wake != nil {
			wake()
		}
	}
}

// await waits until request is finished or ctx has ended, which cancels it.
func (p *pump) await(ctx context.Context, request rlc.Request) Status {
	begun := time.Now()
	ready := make(chan struct{})
	tag, status := p.watch(func(queue rlc.Queue, tag int64) int {
		return rlc.Request_watch(request, queue, tag)
	}, func() { close(ready) })
	if status != OK {
		// No memory or descriptor for a queue: wait in this thread, and look at ctx meanwhile.
		return awaitInThread(ctx, request)
	}
	select {
	case <-ready:
	case <-ctx.Done():
		if !isAnswered(ready, begun.Add(answerTime)) {
			p.forget(tag)
			return giveUp(ctx, request)
		}
	}
	return Status(rlc.Request_status(request))
}

// isAnswered waits for ready until limit.
func isAnswered(ready <-chan struct{}, limit time.Time) bool {
	timer := time.NewTimer(time.Until(limit))
	defer timer.Stop()
	select {
	case <-ready:
		return true
	case <-timer.C:
		return false
	}
}

// giveUp cancels request. One whose own limit is over as well says more than that by itself, if it
// is asked before.
func giveUp(ctx context.Context, request rlc.Request) Status {
	if ctx.Err() == context.DeadlineExceeded {
		status := Status(rlc.Request_wait(request, 0))
		if status != ErrPending && status != ErrInterrupted {
			return status
		}
	}
	return Status(rlc.Request_cancel(request))
}

func awaitInThread(ctx context.Context, request rlc.Request) Status {
	for ctx.Err() == nil {
		status := Status(rlc.Request_wait(request, lookMs))
		if status != ErrPending && status != ErrInterrupted {
			return status
		}
	}
	return giveUp(ctx, request)
}

// ask waits for what start starts. The request is the caller's to free, if there is no error.
func (s *common) ask(ctx context.Context, op, name string, start func() rlc.Request) (rlc.Request,
	error) {
	if ctx.Err() != nil {
		return 0, endedError(ctx, op, name, ErrCancelled)
	}
	s.calls.Lock()
	request := start()
	s.calls.Unlock()
	if request == 0 {
		return 0, &Error{Op: op, Name: name, Status: ErrNoMemory}
	}
	if status := s.pump.await(ctx, request); status != OK {
		defer s.free(request)
		return 0, failed(ctx, op, name, status, request, noWait)
	}
	return request, nil
}

// sent is err of a call that may have changed something: a ctx that ended takes nothing back.
func sent(err error) error {
	var found *Error
	if errors.As(err, &found) && found.Status == ErrCancelled {
		found.Status, found.Message = ErrOutcomeUnknown, ""
	}
	return err
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// A process with Go's lock libraries that does what it is told, one JSON object per line: see
// tests/interop/peer.py.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

type request struct {
	ID      int    `json:"id"`
	Owner   string `json:"owner"`
	Do      string `json:"do"`
	Client  string `json:"client"`
	Kind    string `json:"kind"`
	URL     string `json:"url"`
	Name    string `json:"name"`
	WaitMs  int64  `json:"wait_ms"`
	TtlMs   int64  `json:"ttl_ms"`
	Threads int    `json:"threads"`
	RunMs   int64  `json:"run_ms"`
	HoldMs  int64  `json:"hold_ms"`
	Counter string `json:"counter"`
}

type reply struct {
	ID    int    `json:"id"`
	From  int64  `json:"from"`
	To    int64  `json:"to"`
	Value any    `json:"value"`
	Error string `json:"error,omitempty"`
}

// What was taken.
type held interface {
	release(ctx context.Context) error
	extend(ctx context.Context, lease time.Duration) error
}

// One of the libraries. Without a lock and an error: somebody else has it.
type library interface {
	acquire(ctx context.Context, name string, lease time.Duration, mayWait bool) (held, error)
}

// As their users have it; both of them look again after a pause and are told nothing.
const pause = 100 * time.Millisecond

type redsyncLibrary struct{ sync *redsync.Redsync }

func (l redsyncLibrary) acquire(
	ctx context.Context, name string, lease time.Duration, mayWait bool,
) (held, error) {
	// By default a try may take 5 % of the lease, too little for a short one on a busy machine.
	mutex := l.sync.NewMutex(name, redsync.WithExpiry(lease), redsync.WithTries(1<<20),
		redsync.WithTimeoutFactor(0.5))
	take := mutex.TryLockContext
	if mayWait {
		take = mutex.LockContext
	}
	err := take(ctx)
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return redsyncHeld{mutex}, nil
}

type redsyncHeld struct{ mutex *redsync.Mutex }

func (h redsyncHeld) release(ctx context.Context) error {
	done, err := h.mutex.UnlockContext(ctx)
	if err == nil && !done {
		err = errors.New("not unlocked")
	}
	return err
}

// It extends by the lease it was made with.
func (h redsyncHeld) extend(ctx context.Context, _ time.Duration) error {
	done, err := h.mutex.ExtendContext(ctx)
	if err == nil && !done {
		err = errors.New("not extended")
	}
	return err
}

type redislockLibrary struct{ client *redislock.Client }

func (l redislockLibrary) acquire(
	ctx context.Context, name string, lease time.Duration, mayWait bool,
) (held, error) {
	options := &redislock.Options{}
	if mayWait {
		options.RetryStrategy = redislock.LinearBackoff(pause)
	}
	lock, err := l.client.Obtain(ctx, name, lease, options)
	if errors.Is(err, redislock.ErrNotObtained) || errors.Is(err, context.DeadlineExceeded) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return redislockHeld{lock}, nil
}

type redislockHeld struct{ lock *redislock.Lock }

func (h redislockHeld) release(ctx context.Context) error { return h.lock.Release(ctx) }

func (h redislockHeld) extend(ctx context.Context, lease time.Duration) error {
	return h.lock.Refresh(ctx, lease, nil)
}

// The clock of time.monotonic() and System.nanoTime().
func monotonic() int64 {
	var now syscall.Timespec
	const clockMonotonic = 1
	syscall.Syscall(
		syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}

type process struct {
	mutex     sync.Mutex
	libraries map[string]library
	held      map[string]held
	owners    map[string]chan request
	output    *json.Encoder
}

func (p *process) open(r request) error {
	options, err := redis.ParseURL(r.URL)
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	var made library
	switch r.Kind {
	case "redsync":
		made = redsyncLibrary{redsync.New(goredis.NewPool(client))}
	case "redislock":
		made = redislockLibrary{redislock.New(client)}
	default:
		return fmt.Errorf("no such library: %s", r.Kind)
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.libraries[r.Client] = made
	return nil
}

func (p *process) library(r request) library {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.libraries[r.Client]
}

func take(l library, r request) (held, error) {
	ctx, cancel := context.Background(), func() {}
	if r.WaitMs > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.WaitMs)*time.Millisecond)
	}
	defer cancel()
	lease := time.Duration(r.TtlMs) * time.Millisecond
	return l.acquire(ctx, r.Name, lease, r.WaitMs != 0)
}

// The functions of redsync's types, and the functions and channels that a lock of it can keep.
func api() []string {
	var names []string
	for _, t := range []reflect.Type{
		reflect.TypeOf(&redsync.Redsync{}), reflect.TypeOf(&redsync.Mutex{}),
	} {
		for i := 0; i < t.NumMethod(); i++ {
			names = append(names, t.Method(i).Name)
		}
	}
	mutex := reflect.TypeOf(redsync.Mutex{})
	for i := 0; i < mutex.NumField(); i++ {
		field := mutex.Field(i)
		if kind := field.Type.Kind(); kind == reflect.Func || kind == reflect.Chan {
			names = append(names, field.Name)
		}
	}
	return names
}

func (p *process) do(r request) (any, error) {
	key := strings.Join([]string{r.Owner, r.Client, r.Name}, "\n")
	p.mutex.Lock()
	lock := p.held[key]
	p.mutex.Unlock()
	switch r.Do {
	case "clock":
		return monotonic(), nil
	case "api":
		return api(), nil
	case "open":
		return nil, p.open(r)
	case "acquire":
		lock, err := take(p.library(r), r)
		if lock == nil || err != nil {
			return false, err
		}
		p.mutex.Lock()
		p.held[key] = lock
		p.mutex.Unlock()
		return true, nil
	case "release":
		return nil, lock.release(context.Background())
	case "extend":
		return nil, lock.extend(context.Background(), time.Duration(r.TtlMs)*time.Millisecond)
	case "crowd":
		return crowd(p.library(r), r)
	}
	return nil, fmt.Errorf("no such command: %s", r.Do)
}

// Take, add one to the number in a file, slowly, and give back, until the time is over.
func member(l library, r request, end time.Time) (int, error) {
	count := 0
	for time.Now().Before(end) {
		lock, err := take(l, r)
		if err != nil {
			return count, err
		}
		if lock == nil {
			continue
		}
		// Later, the others may be gone.
		if time.Now().Before(end) {
			if err = addOne(r.Counter, time.Duration(r.HoldMs)*time.Millisecond); err != nil {
				return count, err
			}
			count++
		}
		if err = lock.release(context.Background()); err != nil {
			return count, err
		}
	}
	return count, nil
}

func addOne(path string, hold time.Duration) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(string(text))
	if err != nil {
		return err
	}
	time.Sleep(hold)
	return os.WriteFile(path, []byte(strconv.Itoa(number+1)), 0o600)
}

func crowd(l library, r request) ([]int, error) {
	counts, failures := make([]int, r.Threads), make([]error, r.Threads)
	end := time.Now().Add(time.Duration(r.RunMs) * time.Millisecond)
	var running sync.WaitGroup
	for i := range counts {
		i := i
		running.Add(1)
		go func() {
			defer running.Done()
			counts[i], failures[i] = member(l, r, end)
		}()
	}
	running.Wait()
	return counts, errors.Join(failures...)
}

func (p *process) serve(queue chan request) {
	for r := range queue {
		answer := reply{ID: r.ID, From: monotonic()}
		value, err := p.do(r)
		answer.To, answer.Value = monotonic(), value
		if err != nil {
			answer.Error = err.Error()
		}
		p.mutex.Lock()
		_ = p.output.Encode(answer)
		p.mutex.Unlock()
	}
}

func main() {
	p := &process{
		libraries: map[string]library{},
		held:      map[string]held{},
		owners:    map[string]chan request{},
		output:    json.NewEncoder(os.Stdout),
	}
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		var r request
		if err := json.Unmarshal(input.Bytes(), &r); err != nil {
			panic(err)
		}
		queue := p.owners[r.Owner]
		if queue == nil {
			queue = make(chan request, 64)
			p.owners[r.Owner] = queue
			go p.serve(queue)
		}
		queue <- r
	}
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// Package locks has one lock of each library that is compared, and what the programs share.
package locks

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"redlatch.io/redlatch"
)

// Lock is a lock that waits, has a lease of 30 s, and is taken and given back by one goroutine. It
// panics on any failure.
type Lock interface {
	Lock()
	Unlock()
}

// Names of the libraries.
var Names = []string{"lock", "do", "redsync", "redislock", "rueidislock"}

// New makes the lock of a library that has this name on the server at port.
func New(library string, port int, name string) Lock {
	return maker(library, port, 1)(name)
}

// Many makes count locks of a library, with one client; their names begin with prefix.
func Many(library string, port int, prefix string, count int) []Lock {
	made := make([]Lock, count)
	makeOne := maker(library, port, count)
	for i := range made {
		made[i] = makeOne(fmt.Sprint(prefix, "-", i))
	}
	return made
}

// maker opens a client for as many callers.
func maker(library string, port, callers int) func(name string) Lock {
	address := fmt.Sprint("127.0.0.1:", port)
	switch library {
	case "lock":
		client := open(address)
		return func(name string) Lock { return &ours{client: client, name: name} }
	case "permit":
		client := open(address)
		return func(name string) Lock { return &permit{semaphore: client.Semaphore(name, 10)} }
	case "do":
		client := open(address)
		return func(name string) Lock { return &guarded{client: client, name: name} }
	case "redsync":
		sync := redsync.New(goredis.NewPool(openGoRedis(address, callers)))
		return func(name string) Lock {
			return &ofRedsync{sync.NewMutex(
				name, redsync.WithExpiry(lease), redsync.WithTries(1<<30))}
		}
	case "redislock":
		client := redislock.New(openGoRedis(address, callers))
		return func(name string) Lock { return &ofRedislock{client: client, name: name} }
	case "rueidislock":
		locker := openRueidis(address)
		return func(name string) Lock { return &ofRueidislock{locker: locker, name: name} }
	}
	panic(library)
}

// openGoRedis has a connection for each caller: waiting for one of fewer is slower.
func openGoRedis(address string, callers int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: address, PoolSize: callers})
}

const lease = 30 * time.Second

var background = context.Background()

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func open(address string) *redlatch.Client {
	return must(redlatch.Dial(background, "redis://"+address))
}

type ours struct {
	client *redlatch.Client
	name   string
	held   *redlatch.Lease
}

func (l *ours) Lock() { l.held = must(l.client.Lock(background, l.name)) }

func (l *ours) Unlock() { must(0, l.held.Unlock(background)) }

type permit struct {
	semaphore *redlatch.Semaphore
	held      *redlatch.Lease
}

func (p *permit) Lock() { p.held = must(p.semaphore.Acquire(background, 1)) }

func (p *permit) Unlock() { must(0, p.held.Unlock(background)) }

// guarded does all of it in Unlock: what it guards is nothing.
type guarded struct {
	client *redlatch.Client
	name   string
}

func (l *guarded) Lock() {}

func (l *guarded) Unlock() {
	must(0, l.client.Do(background, l.name, func(context.Context) error { return nil }))
}

type ofRedsync struct{ mutex *redsync.Mutex }

func (l *ofRedsync) Lock() { must(0, l.mutex.Lock()) }

func (l *ofRedsync) Unlock() { must(l.mutex.Unlock()) }

type ofRedislock struct {
	client *redislock.Client
	name   string
	held   *redislock.Lock
}

// It waits only if told how; this is the way of its README.
var everyTenthOfASecond = &redislock.Options{
	RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond),
}

func (l *ofRedislock) Lock() {
	// Without a deadline it would wait for one lease.
	ctx, cancel := context.WithTimeout(background, time.Hour)
	defer cancel()
	l.held = must(l.client.Obtain(ctx, l.name, lease, everyTenthOfASecond))
}

func (l *ofRedislock) Unlock() { must(0, l.held.Release(background)) }

type ofRueidislock struct {
	locker rueidislock.Locker
	name   string
	cancel context.CancelFunc
}

// openRueidis takes one key for each lock and not three, as all others do. NoLoopTracking, which
// needs Redis 7.0.5, would be quicker; but then it waits for ever after a call that took more than
// TryNextAfter, 20 ms: it deletes its own key, and is not told of that.
func openRueidis(address string) rueidislock.Locker {
	return must(rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{address}},
		KeyValidity:  lease,
		KeyMajority:  1,
	}))
}

func (l *ofRueidislock) Lock() {
	_, cancel, err := l.locker.WithContext(background, l.name)
	l.cancel = must(cancel, err)
}

func (l *ofRueidislock) Unlock() { l.cancel() }

// Arguments are those of the command line: name=value.
type Arguments map[string]string

// Given are those of this program.
func Given() Arguments {
	given := Arguments{}
	for _, word := range os.Args[1:] {
		name, value, _ := strings.Cut(word, "=")
		given[name] = value
	}
	return given
}

// Count is a whole number.
func (a Arguments) Count(name string) int { return must(strconv.Atoi(a[name])) }

// Seconds is a duration that is given in seconds.
func (a Arguments) Seconds(name string) time.Duration {
	return time.Duration(must(strconv.ParseFloat(a[name], 64)) * float64(time.Second))
}

// Print is for the result, which is one JSON object.
func Print(result any) { fmt.Println(string(must(json.Marshal(result)))) }

// Us gives the quantile of times, which it sorts, in microseconds.
func Us(times []time.Duration, quantile float64) float64 {
	sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
	return float64(times[int(float64(len(times)-1)*quantile)].Nanoseconds()) / 1000
}

// CPU is what this process has used so far.
func CPU() time.Duration {
	var usage syscall.Rusage
	must(0, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlatch.io/redlatch"
)

// As many as a service may have in trouble, with a thread for none of them. The runtime has one for
// each processor that it uses.
const (
	crowd      = 10_000
	processors = 4
	// The runtime had 121 on a busy machine; one for each that waits would be a thousand or more.
	maxThreads = 500
)

func TestWaitingGoroutinesNeedNoThreads(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
	server := startServer(t)
	client, other := server.client(), server.client()
	held, err := other.Lock(background, "x")
	must(t, err)
	var begun, inside, most atomic.Int32
	var all sync.WaitGroup
	for i := 0; i < crowd; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			begun.Add(1)
			err := client.Do(background, "x", func(context.Context) error {
				if inside.Add(1) != 1 {
					t.Error("two at a time")
				}
				most.Store(max(most.Load(), int32(threads(t))))
				inside.Add(-1)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}()
	}
	eventually(t, func() bool {
		info, err := other.Inspect(background, "x")
		return err == nil && info.Waiting > 0 && begun.Load() == crowd
	})
	waiting := threads(t)
	must(t, held.Unlock(background))
	all.Wait()
	is(t, waiting <= maxThreads, "%d threads while %d wait", waiting, crowd)
	is(t, most.Load() <= maxThreads, "%d threads while they had their turns", most.Load())
}

// Go's own poller reads for all of them: the library's thread sleeps, and no goroutine sits in a
// thread until its answer is there.
func TestAnswersAreReadByGosPollerWithoutTheLibrarysThread(t *testing.T) {
	const goroutines, cycles = 64, 50
	client := startServer(t).client()
	turn := func(name string) {
		lease, err := client.Lock(background, name)
		if err == nil {
			err = lease.Unlock(background)
		}
		if err != nil {
			t.Error(err)
		}
	}
	turn("first") // What is made once is there from here on.
	before := sleepsOfLibrary(t)
	var all sync.WaitGroup
	for i := 0; i < goroutines; i++ {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			for k := 0; k < cycles; k++ {
				turn(fmt.Sprint("own-", i))
			}
		}(i)
	}
	all.Wait()
	count := sleepsOfLibrary(t) - before
	is(t, count < goroutines*cycles/20, "it slept %d times in %d cycles", count, goroutines*cycles)
}

func TestCallsToASilentServerNeedNoThreads(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
	server := startServer(t)
	client := server.client()
	server.stop()
	ctx, cancel := context.WithCancel(background)
	var begun atomic.Int32
	var all sync.WaitGroup
	for i := 0; i < 1000; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			begun.Add(1)
			_, err := client.Lock(ctx, "x")
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}()
	}
	eventually(t, func() bool { return begun.Load() == 1000 })
	cancel()
	all.Wait()
	// The runtime keeps those that it once had.
	is(t, threads(t) <= maxThreads, "%d threads", threads(t))
	server.resume()
}

// Whatever order the collector finds them in: nothing crashes, what is over is freed, and what is
// held stays so.
func TestDroppedClientsAndLeasesAreCollectedInAnyOrder(t *testing.T) {
	server := startServer(t)
	client := server.client()
	leaks := make(chan redlatch.Leak, 100)
	redlatch.ReportLeaks(func(leak redlatch.Leak) { leaks <- leak })
	defer redlatch.ReportLeaks(nil)
	dropLeases(t, client)
	dropClients(t, server)
	found := map[string]int{}
	eventually(t, func() bool {
		runtime.GC()
		select {
		case leak := <-leaks:
			found[leak.What+" "+leak.Name]++
			is(t, strings.Contains(leak.Stack, "redlatch_test.drop"), "%q", leak.Stack)
		default:
		}
		return found["lease watched"] == 1 && found["lease kept"] == 1 && found["client "] == 2
	})
	is(t, len(found) == 3, "%v", found)
	is(t, server.ask("EXISTS", "kept") == ":1", "its work may not be over")
	is(t, server.ask("EXISTS", "watched") == ":1", "its work may not be over")
	is(t, server.ask("EXISTS", "given back") == ":0", "it was released")
	must(t, client.Close())
	is(t, server.ask("EXISTS", "watched") == ":0", "the client's end is that of all its leases")
}

func dropLeases(t *testing.T, client *redlatch.Client) {
	watched, err := client.Lock(background, "watched", redlatch.TTL(10*time.Minute))
	must(t, err)
	is(t, watched.Context().Err() == nil, "it is held")
	lease, err := client.Lock(background, "given back")
	must(t, err)
	must(t, lease.Unlock(background))
}

func dropClients(t *testing.T, server *server) {
	client, err := redlatch.Dial(background, server.url())
	must(t, err)
	_, err = client.Lock(background, "kept", redlatch.TTL(10*time.Minute))
	must(t, err)
	_, err = redlatch.Dial(background, server.url())
	must(t, err)
}

func TestALossIsLoggedAsAnError(t *testing.T) {
	server := startServer(t)
	var written syncedBuffer
	client := server.client()
	stop := client.LogTo(slog.New(slog.NewTextHandler(&written, nil)))
	defer stop()
	lease, err := client.Lock(background, "x", redlatch.TTL(lossTTL))
	must(t, err)
	must(t, client.ForceReleaseAny(background, "x"))
	is(t, errors.Is(lease.WaitLost(background), redlatch.ErrLost), "it is lost")
	eventually(t, func() bool { return strings.Contains(written.String(), "level=ERROR") })
	reason, words := lease.LostReason()
	is(t, reason == redlatch.LostGone && words != "", "%v %q", reason, words)
	is(t, strings.Contains(written.String(), "source=redlatch"), "%s", written.String())
	stop()
	stop()
}

func TestEachClientHasItsOwnLog(t *testing.T) {
	server := startServer(t)
	var written [2]syncedBuffer
	for i := range written {
		client := server.client()
		client.LogTo(slog.New(slog.NewTextHandler(&written[i], nil)))
		name := fmt.Sprintf("lock-%d", i)
		lease, err := client.Lock(background, name, redlatch.TTL(lossTTL))
		must(t, err)
		must(t, client.ForceReleaseAny(background, name))
		is(t, errors.Is(lease.WaitLost(background), redlatch.ErrLost), "it is lost")
		must(t, client.Close()) // which writes what is left
	}
	for i := range written {
		text := written[i].String()
		is(t, strings.Contains(text, fmt.Sprintf("lock-%d", i)), "its own line: %s", text)
		is(t, !strings.Contains(text, fmt.Sprintf("lock-%d", 1-i)), "no other: %s", text)
	}
}

// slowBuffer tells of a line, and takes its time to write it.
type slowBuffer struct {
	syncedBuffer
	begun chan struct{}
}

func (b *slowBuffer) Write(data []byte) (int, error) {
	b.begun <- struct{}{}
	time.Sleep(100 * time.Millisecond)
	return b.syncedBuffer.Write(data)
}

func TestCloseReturnsAfterTheLastLine(t *testing.T) {
	server := startServer(t)
	client := server.client()
	written := slowBuffer{begun: make(chan struct{}, 100)}
	client.LogTo(slog.New(slog.NewTextHandler(&written, nil)))
	_, err := client.Lock(background, "x", redlatch.TTL(lossTTL))
	must(t, err)
	must(t, client.ForceReleaseAny(background, "x"))
	<-written.begun
	must(t, client.Close())
	text := written.String()
	is(t, strings.Contains(text, "lock 'x' was lost"), "written: %s", text)
}

type syncedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *syncedBuffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(data)
}

func (b *syncedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch_test

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"sync"
	"testing"

	"redlatch.io/redlatch"
)

// descriptors are those of this process, the one that lists them included.
func descriptors(t testing.TB) int {
	t.Helper()
	found, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(found)
}

// A pump that was closed may still be about to close its own.
func hasNoMoreThan(t *testing.T, count int) {
	t.Helper()
	eventually(t, func() bool { return descriptors(t) <= count })
}

// usedAndClosed is a client that was in use when it was closed; the lease keeps it.
func usedAndClosed(t *testing.T, server *server, protocol string) *redlatch.Lease {
	t.Helper()
	client, err := redlatch.Dial(background, server.url(), redlatch.WithOption("protocol", protocol))
	must(t, err)
	lease, err := client.Lock(background, "x")
	must(t, err)
	inside := lease.Context()
	must(t, client.Close())
	<-inside.Done()
	return lease
}

func TestClosedClientsLeakNoDescriptors(t *testing.T) {
	server := startServer(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	kept := []*redlatch.Lease{usedAndClosed(t, server, "2")}
	before := descriptors(t)
	for _, count := range []int{168, 1000} {
		for len(kept) < count {
			protocol := []string{"2", "3"}[len(kept)%2]
			kept = append(kept, usedAndClosed(t, server, protocol))
		}
		hasNoMoreThan(t, before)
	}
	is(t, errors.Is(kept[0].Check(), redlatch.ErrNotHeld), "%v", kept[0].Check())
	is(t, errors.Is(kept[0].Unlock(background), redlatch.ErrClosed), "as before")
	hasNoMoreThan(t, before)
}

// callsUntilClosed returns when one of its calls has ended with ErrClosed, as it must.
func callsUntilClosed(t *testing.T, client *redlatch.Client, name string) {
	for {
		lease, err := client.Lock(background, name)
		if err == nil {
			_ = lease.Context()
			err = lease.Unlock(background)
		}
		if errors.Is(err, redlatch.ErrClosed) {
			return
		}
		if err != nil {
			t.Errorf("%v", err)
			return
		}
	}
}

func TestCloseDuringCallsLeaksNoDescriptors(t *testing.T) {
	const goroutines, clients = 64, 24
	server := startServer(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	held, err := server.client().Lock(background, "all")
	must(t, err)
	before := 0
	for i := 0; i < clients; i++ {
		client, err := redlatch.Dial(background, server.url())
		must(t, err)
		var ended sync.WaitGroup
		for j := 0; j < goroutines; j++ {
			ended.Add(1)
			name := []string{"all", "few", "pair", "own"}[j%4]
			go func() {
				defer ended.Done()
				callsUntilClosed(t, client, name)
			}()
		}
		eventually(t, func() bool {
			info, err := client.Inspect(background, "all")
			return err == nil && info.Waiting > 0
		})
		must(t, client.Close())
		ended.Wait()
		if i == 0 {
			before = descriptors(t) // at most those of this client, too
		}
	}
	must(t, held.Unlock(background))
	hasNoMoreThan(t, before)
}

func TestCallsAfterCloseLeakNoDescriptors(t *testing.T) {
	server := startServer(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before := descriptors(t)
	client, err := redlatch.Dial(background, server.url())
	must(t, err)
	must(t, client.Close())
	hasNoMoreThan(t, before)
	_, err = client.Lock(background, "x")
	is(t, errors.Is(err, redlatch.ErrClosed), "%v", err)
	is(t, errors.Is(client.Connect(background), redlatch.ErrClosed), "as before")
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	_, err = client.Check(ctx)
	is(t, errors.Is(err, redlatch.ErrClosed), "%v", err)
	_, err = client.Info()
	must(t, err)
	must(t, client.Close())
	hasNoMoreThan(t, before)
}

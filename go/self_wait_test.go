// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"redlatch.io/redlatch"
)

type linesOf struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *linesOf) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *linesOf) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

const selfWait = "lock 'x': a goroutine waits for a lock that this client holds"

// logged is what is logged while a wait is long after a millisecond.
func logged(t *testing.T) *linesOf {
	lines := &linesOf{}
	restore, before := redlatch.NoticeSelfWaitsAfter(time.Millisecond), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(lines, nil)))
	t.Cleanup(func() {
		slog.SetDefault(before)
		restore()
	})
	return lines
}

func isQueued(client *redlatch.Client) func() bool {
	return func() bool {
		info, err := client.Inspect(background, "x")
		return err == nil && info.Waiting > 0
	}
}

// waitUntil waits for the lock x until fact holds.
func waitUntil(t *testing.T, client *redlatch.Client, fact func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(background)
	done := make(chan error)
	go func() {
		_, err := client.Lock(ctx, "x")
		done <- err
	}()
	eventually(t, fact)
	cancel()
	err := <-done
	is(t, errors.Is(err, context.Canceled), "%v", err)
}

func TestAWaitForTheCallersOwnLockIsLoggedOnce(t *testing.T) {
	lines := logged(t)
	server := startServer(t)
	client, other := server.client(), server.client()
	held, err := client.Lock(background, "x")
	must(t, err)
	waitUntil(t, other, isQueued(other)) // which holds nothing
	is(t, lines.count(selfWait) == 0, "%s", lines.text.String())
	waitUntil(t, client, func() bool { return lines.count(selfWait) > 0 })
	waitUntil(t, client, isQueued(other))
	is(t, lines.count(selfWait) == 1, "%s", lines.text.String())
	must(t, held.Unlock(background))
}

func TestAWaitForTheCallersOwnLockGoesToTheClientsLogger(t *testing.T) {
	all, own := logged(t), &linesOf{}
	client := startServer(t).client()
	client.LogTo(slog.New(slog.NewTextHandler(own, nil)))
	held, err := client.Lock(background, "x")
	must(t, err)
	waitUntil(t, client, func() bool { return own.count(selfWait) > 0 })
	is(t, all.count(selfWait) == 0, "%s", all.text.String())
	must(t, held.Unlock(background))
}

func TestAWaitAfterAnEndedLeaseIsNoSelfWait(t *testing.T) {
	lines := logged(t)
	server := startServer(t)
	client, other := server.client(), server.client()
	for i := 0; i < 2; i++ {
		lease, err := client.Lock(background, "x")
		must(t, err)
		must(t, lease.Unlock(background))
	}
	held, err := other.Lock(background, "x")
	must(t, err)
	waitUntil(t, client, isQueued(other))
	is(t, lines.count(selfWait) == 0, "%s", lines.text.String())
	must(t, held.Unlock(background))
}

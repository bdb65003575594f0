// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"context"
	"testing"
	"time"
)

// What fails here does so for lack of memory, which no test from outside can bring about.
func TestAFailedWatchOrAnswerOfCredentialsIsRepeated(t *testing.T) {
	client, err := Open("redis://127.0.0.1:1", WithOption("connect_timeout", "20s"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	calls := make(chan int)
	count := 0
	stop, err := client.CredentialsFrom(func(ctx context.Context) (Credentials, error) {
		source := client.common.source.Load()
		if count++; count == 1 {
			source.mu.Lock()
			source.client = 0
			source.mu.Unlock()
			time.AfterFunc(noMemoryPause/2, func() {
				source.mu.Lock()
				source.client = client.handle
				source.mu.Unlock()
			})
		}
		select {
		case calls <- count:
		case <-ctx.Done():
		}
		return Credentials{Valid: -1}, nil // which is refused, so that fetch is called again
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	connected := make(chan error)
	go func() { connected <- client.Connect(ctx) }()
	for i := 1; i <= 2; i++ {
		select {
		case <-calls:
		case <-ctx.Done():
			t.Fatalf("fetch was called %d times", i-1)
		}
	}
	cancel()
	<-connected
}

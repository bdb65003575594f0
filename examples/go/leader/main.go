// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// Several processes stand by, and one of them leads until it ends, or loses the lead: then it stops
// its work and stands by again.
//
//	leader redis://localhost:6379
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"redlatch.io/redlatch"
)

// work goes on until ctx ends, which is when the lead is lost. A process that is paused in a step
// goes on with it: the fence lets others refuse that.
func work(ctx context.Context, fence int64) {
	for ctx.Err() == nil {
		fmt.Println("works, fence", fence)
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	fmt.Println("stopped:", context.Cause(ctx))
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: leader URL")
		os.Exit(64)
	}
	client, err := redlatch.Open(os.Args[1])
	for err == nil {
		// The next one leads at the latest 3 s after this one has crashed. It stands by as long as
		// it takes, also while the server is away.
		var lease *redlatch.Lease
		lease, err = client.Lock(context.Background(), "leader", redlatch.TTL(3*time.Second))
		if err == nil {
			fmt.Println("leads, fence", lease.Fence())
			work(lease.Context(), lease.Fence())
		}
	}
	log.Fatal("leader: ", err)
}

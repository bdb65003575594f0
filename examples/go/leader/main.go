// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// Several processes stand by, and one of them leads until it ends, or loses the term: then it stops
// its work and stands by again.
//
//	leader redis://localhost:6379 [ID]
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"redlatch.io/redlatch"
)

// work runs until ctx ends, which is when the term is lost. A process that is paused in a step
// continues it: the fence lets others refuse that.
func work(ctx context.Context, term redlatch.Term) error {
	fmt.Println("leads, fence", term.Fence())
	for ctx.Err() == nil {
		fmt.Println("works, fence", term.Fence())
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	fmt.Println("stopped:", context.Cause(ctx))
	return nil
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 && len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: leader URL [ID]")
		os.Exit(64)
	}
	// The next one leads at the latest 3 s after this one has crashed. It stands by as long as it
	// takes, also while the server is away.
	options := []redlatch.Option{redlatch.TTL(3 * time.Second)}
	if len(os.Args) == 3 {
		options = append(options, redlatch.CandidateID(os.Args[2]))
	}
	client, err := redlatch.Open(os.Args[1])
	if err == nil {
		err = client.Lead(context.Background(), "leader", work, options...)
	}
	log.Fatal("leader: ", err)
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// A pool of three: of all processes that are started, on many hosts, three work at a time, and the
// others wait for their turn. The work is a report, here the number of lines of the input.
//
//	pool redis://localhost:6379 < access.log
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"redlatch.io/redlatch"
)

const poolSize = 3

func report() error {
	text, err := io.ReadAll(os.Stdin)
	fmt.Printf("done: %d lines\n", bytes.Count(text, []byte("\n")))
	return err
}

func waitAndReport(ctx context.Context, client *redlatch.Client) error {
	lease, err := client.Semaphore("pool", poolSize).Acquire(ctx, 1)
	if err != nil {
		return err
	}
	fmt.Println("begun")
	// ErrLost would mean that more than three may have worked at the same time.
	return errors.Join(report(), lease.Unlock(ctx))
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pool URL < FILE")
		os.Exit(64)
	}
	client, err := redlatch.Open(os.Args[1])
	if err == nil {
		err = waitAndReport(context.Background(), client)
	}
	if err != nil {
		log.Fatal("pool: ", err)
	}
}

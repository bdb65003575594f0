// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// A job that several hosts start at the same time, and that one of them does: a report, here the
// number of lines of the input. Whoever finds the lock taken skips it.
//
//	skip redis://localhost:6379 < access.log
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

func report() error {
	text, err := io.ReadAll(os.Stdin)
	fmt.Printf("done: %d lines\n", bytes.Count(text, []byte("\n")))
	return err
}

func tryOrSkip(ctx context.Context, client *redlatch.Client) error {
	lease, err := client.TryLock(ctx, "report")
	if errors.Is(err, redlatch.ErrBusy) {
		fmt.Println("skipped: another host does it")
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Println("begun")
	// ErrLost would mean that somebody else may have done it too.
	return errors.Join(report(), lease.Unlock(ctx))
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: skip URL < FILE")
		os.Exit(64)
	}
	client, err := redlatch.Open(os.Args[1])
	if err == nil {
		err = tryOrSkip(context.Background(), client)
	}
	if err != nil {
		log.Fatal("skip: ", err)
	}
}

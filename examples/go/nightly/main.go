// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// A report that every host starts each night, and that one of them makes: once for each day. If it
// fails there, another host may try.
//
//	nightly redis://localhost:6379 "$(date +%F)"
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"redlatch.io/redlatch"
)

// report is the work. An error would leave the next host a try.
func report(day string) error {
	_, err := fmt.Println("done: the report of", day)
	return err
}

// reportOnce waits for the end of a run that is under way.
func reportOnce(ctx context.Context, client *redlatch.Client, day string) error {
	job := func(context.Context, *redlatch.Lease) error { return report(day) }
	err := client.Once(ctx, "nightly", 48*time.Hour, job, redlatch.Key(day))
	if errors.Is(err, redlatch.ErrSkipped) {
		fmt.Println("skipped: the report of", day, "is done")
		return nil
	}
	// ErrLost would mean that another host may have begun it, too.
	return err
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: nightly URL DAY")
		os.Exit(64)
	}
	client, err := redlatch.Open(os.Args[1])
	if err == nil {
		err = reportOnce(context.Background(), client, os.Args[2])
	}
	if err != nil {
		log.Fatal("nightly: ", err)
	}
}

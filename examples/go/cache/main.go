// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// A cache that many processes read at the same time, and that one of them refreshes when it is too
// old, while the others wait for the new value.
//
//	cache redis://localhost:6379 cache.txt
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

func isFresh(path string) bool {
	found, err := os.Stat(path)
	return err == nil && time.Since(found.ModTime()) < time.Minute
}

// refresh is something slow, such as a query.
func refresh(path string) error {
	time.Sleep(time.Second)
	fmt.Println("refreshed")
	return os.WriteFile(path, []byte(fmt.Sprintln("value of process", os.Getpid())), 0o644)
}

func show(path string) error {
	text, err := os.ReadFile(path)
	fmt.Print(string(text))
	return err
}

func readOrRefresh(ctx context.Context, client *redlatch.Client, path string) error {
	lease, err := client.RLock(ctx, "cache")
	if err == nil && !isFresh(path) {
		lease.Unlock(ctx)
		lease, err = client.WLock(ctx, "cache")
		// Another may have refreshed it while this one waited.
		if err == nil && !isFresh(path) {
			err = refresh(path)
		}
	}
	if lease == nil {
		return err
	}
	// ErrLost would mean that somebody else may have refreshed it too.
	return errors.Join(err, show(path), lease.Unlock(ctx))
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: cache URL FILE")
		os.Exit(64)
	}
	client, err := redlatch.Open(os.Args[1])
	if err == nil {
		err = readOrRefresh(context.Background(), client, os.Args[2])
	}
	if err != nil {
		log.Fatal("cache: ", err)
	}
}

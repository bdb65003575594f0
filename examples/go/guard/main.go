// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// Several processes add to the number in a file; a lock keeps them from losing additions.
//
//	guard redis://localhost:6379 counter.txt 100
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"redlatch.io/redlatch"
)

func addOne(path string) error {
	count := 0
	if text, err := os.ReadFile(path); err == nil {
		fmt.Sscan(string(text), &count)
	}
	return os.WriteFile(path, []byte(fmt.Sprintln(count+1)), 0o644)
}

// addOneGuarded waits for the lock for at most 30 s. Its error Is ErrLost if the lock was lost
// meanwhile: somebody else may have been inside too.
func addOneGuarded(client *redlatch.Client, path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return client.Do(ctx, "counter", func(context.Context) error { return addOne(path) })
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: guard URL FILE [TIMES]")
		os.Exit(64)
	}
	times := 1
	if len(os.Args) > 3 {
		times, _ = strconv.Atoi(os.Args[3])
	}
	client, err := redlatch.Open(os.Args[1])
	for ; err == nil && times > 0; times-- {
		err = addOneGuarded(client, os.Args[2])
	}
	if err != nil {
		log.Fatal("guard: ", err)
	}
}

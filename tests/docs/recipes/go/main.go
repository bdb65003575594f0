// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// recipes (net/http | gin) ADDRESS: the servers of docs/recipes.md. The test puts their functions
// beside this file. A report is written until a line comes: "end", or "lose", where the test has
// removed the lock before.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"redlatch.io/redlatch"
)

var words = make(chan string)

func readWords() {
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		words <- input.Text()
	}
	log.Fatal("the test has ended")
}

func writeReport(ctx context.Context, fence int64) error {
	fmt.Println("writing", fence)
	if <-words == "end" {
		return ctx.Err()
	}
	redlatch.LeaseOf(ctx).Extend(ctx, 30*time.Second) // notices the loss
	<-ctx.Done()
	return context.Cause(ctx)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go readWords()
	run := serve
	if os.Args[1] == "gin" {
		run = serveGin
	}
	if err := run(ctx, os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

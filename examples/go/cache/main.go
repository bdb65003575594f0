// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// A value that many processes want, and that takes long to compute: one of them computes it, the
// others get its value, and so does every caller for a minute.
//
//	cache redis://localhost:6379
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"redlatch.io/redlatch"
)

// compute is something slow, such as a query. An error would reach the waiting callers, too.
func compute(context.Context) ([]byte, error) {
	fmt.Println("computed")
	time.Sleep(time.Second)
	return []byte(fmt.Sprint("value of process ", os.Getpid())), nil
}

func readOrCompute(client *redlatch.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	value, err := client.SingleFlight(ctx, "cache", time.Minute, compute)
	if err == nil {
		fmt.Println(string(value))
	}
	return err
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: cache URL")
		os.Exit(64)
	}
	client, err := redlatch.Open(os.Args[1])
	if err == nil {
		err = readOrCompute(client)
	}
	if err != nil {
		log.Fatal("cache: ", err)
	}
}

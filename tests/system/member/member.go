// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// What test_languages.py has in Go: for some ms it takes one of ten locks, holds it for a moment
// and gives it back, over and over. How that went stands in its record.
//
//	member URL NAME MS SEED
//
// REDLATCH_MEMBER_DEFECT=cut_at_nul plants a defect, as that of the conformance runner.
package main

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"time"

	"redlatch.io/redlatch"
	"redlatch/tests/support/recorded"
)

const (
	keys        = 10
	oneTryIn    = 8
	longestHold = 5 * time.Millisecond
	wait        = 20 * time.Second
	ttl         = time.Second
)

var record = recorded.Open()

func take(client *redlatch.Client, key string, isTry bool) (*redlatch.Lease, error) {
	name := key
	if os.Getenv("REDLATCH_MEMBER_DEFECT") == "cut_at_nul" {
		name, _, _ = strings.Cut(key, "\x00")
	}
	words := recorded.Words{"name": key, "client": "0", "lease_ms": milliseconds(ttl)}
	if isTry {
		words["wait_ms"] = "0"
		return record.Acquire(words, func() (*redlatch.Lease, error) {
			return client.TryLock(context.Background(), name, redlatch.TTL(ttl))
		})
	}
	words["wait_ms"] = milliseconds(wait)
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return record.Acquire(words, func() (*redlatch.Lease, error) {
		return client.Lock(ctx, name, redlatch.TTL(ttl))
	})
}

func milliseconds(length time.Duration) string { return fmt.Sprint(length.Milliseconds()) }

// holdOnce leaves it to the record that somebody else has it, or that it was lost.
func holdOnce(client *redlatch.Client, name string, random *rand.Rand) {
	key := fmt.Sprintf("%s\x00%d", name, random.Intn(keys))
	lease, err := take(client, key, random.Intn(oneTryIn) == 0)
	if err != nil {
		return
	}
	time.Sleep(time.Duration(random.Int63n(int64(longestHold))))
	_, _ = record.Release(lease, func() (bool, error) {
		return lease.Release(context.Background())
	})
}

func main() {
	ms, err := strconv.Atoi(os.Args[3])
	if err != nil {
		panic(err)
	}
	seed, err := strconv.ParseInt(os.Args[4], 10, 64)
	if err != nil {
		panic(err)
	}
	end := time.Now().Add(time.Duration(ms) * time.Millisecond)
	random := rand.New(rand.NewSource(seed))
	client, err := redlatch.Dial(context.Background(), os.Args[1])
	if err != nil {
		panic(err)
	}
	for time.Now().Before(end) {
		holdOnce(client, os.Args[2], random)
	}
	record.Close("0")
	_ = client.Close()
}

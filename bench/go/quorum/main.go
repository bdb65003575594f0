// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// Cycles of redsync, beside bench/quorum.cc. Takes `ports=` of the servers. For each number on
// standard input it does so many cycles, and prints one JSON object.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	rsredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

func run(mutex *redsync.Mutex, cycles int) {
	var times []float64
	failed := 0
	for i := 0; i < cycles; i++ {
		start := time.Now()
		if mutex.Lock() != nil {
			failed++
		} else if isDone, err := mutex.Unlock(); !isDone || err != nil {
			failed++
		}
		times = append(times, float64(time.Since(start).Nanoseconds())/1000)
	}
	sort.Float64s(times)
	fmt.Printf("{\"p50_us\": %f, \"failed\": %d}\n", times[len(times)/2], failed)
}

func main() {
	var pools []rsredis.Pool
	for _, port := range strings.Split(strings.TrimPrefix(os.Args[1], "ports="), ",") {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
		pools = append(pools, goredis.NewPool(client))
	}
	mutex := redsync.New(pools...).NewMutex(
		"quorum-peer", redsync.WithExpiry(30*time.Second), redsync.WithTries(1))
	for cycles := 0; ; {
		if _, err := fmt.Scan(&cycles); err != nil {
			return
		}
		run(mutex, cycles)
	}
}

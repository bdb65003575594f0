// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// Acquire and release in many goroutines of one process, each on a key of its own, by this package
// and by others. Each library has one client.
//
//	port round   the server, and a number that no other run has
//	goroutines   of each library
//	seconds      for each library
//	blocks       into which these are cut, taking turns: a disturbance hits everybody alike
//	warmup       seconds of each before it is measured
//	libraries    as bench/go/locks names them, with commas; without it, all
//
// Prints for each library the cycles per second, p50 and p99 in us, the CPU time of this process
// for each cycle, and how many cycles the goroutine with the fewest did.
package main

import (
	"slices"
	"strings"
	"sync"
	"time"

	"redlatch/bench/locks"
)

type candidate struct {
	name    string
	locks   []locks.Lock
	times   [][]time.Duration // of each goroutine
	elapsed time.Duration
	cpu     time.Duration
}

func (c *candidate) forget() {
	c.times = make([][]time.Duration, len(c.locks))
	c.elapsed, c.cpu = 0, 0
}

func (c *candidate) run(limit time.Duration) {
	cpu, start := locks.CPU(), time.Now()
	end := start.Add(limit)
	var all sync.WaitGroup
	all.Add(len(c.locks))
	for i := range c.locks {
		go func(i int) {
			defer all.Done()
			c.times[i] = appendCycles(c.times[i], c.locks[i], end)
		}(i)
	}
	all.Wait()
	c.elapsed += time.Since(start)
	c.cpu += locks.CPU() - cpu
}

func appendCycles(times []time.Duration, lock locks.Lock, end time.Time) []time.Duration {
	for began := time.Now(); began.Before(end); {
		lock.Lock()
		lock.Unlock()
		now := time.Now()
		times = append(times, now.Sub(began))
		began = now
	}
	return times
}

func (c *candidate) addTo(figures map[string]float64) {
	all := slices.Concat(c.times...)
	fewest := len(all)
	for _, times := range c.times {
		fewest = min(fewest, len(times))
	}
	count := float64(len(all))
	figures[c.name+"_per_s"] = count / c.elapsed.Seconds()
	figures[c.name+"_p50_us"] = locks.Us(all, 0.5)
	figures[c.name+"_p99_us"] = locks.Us(all, 0.99)
	figures[c.name+"_cpu_us"] = float64(c.cpu.Nanoseconds()) / 1000 / count
	figures[c.name+"_fewest"] = float64(fewest)
}

func main() {
	given := locks.Given()
	blocks := given.Count("blocks")
	names := locks.Names
	if given["libraries"] != "" {
		names = strings.Split(given["libraries"], ",")
	}
	var candidates []*candidate
	for _, name := range names {
		prefix := "goroutines-" + given["round"] + "-" + name
		one := &candidate{name: name}
		one.locks = locks.Many(name, given.Count("port"), prefix, given.Count("goroutines"))
		candidates = append(candidates, one)
	}
	for _, one := range candidates {
		one.forget()
		one.run(given.Seconds("warmup"))
		one.forget()
	}
	for i := 0; i < blocks; i++ {
		for k := range candidates {
			candidates[(i+k)%len(candidates)].run(given.Seconds("seconds") / time.Duration(blocks))
		}
	}
	figures := map[string]float64{}
	for _, one := range candidates {
		one.addTo(figures)
	}
	locks.Print(figures)
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// Acquire and release from Go, by this package and by others.
//
//	port round   the server, and a number that no other run has
//	cycles       of each library
//	blocks       into which these are cut, taking turns: a disturbance hits everybody alike
//	warmup       seconds before it is measured
//
// Prints for each library the p50 and p99 in us, the CPU time of this process, and what was
// allocated on Go's heap for each cycle.
package main

import (
	"runtime"
	"time"

	"redlatch/bench/locks"
)

type candidate struct {
	name   string
	lock   locks.Lock
	times  []time.Duration
	cpu    time.Duration
	allocs uint64
	bytes  uint64
}

func (c *candidate) run(cycles int) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := locks.CPU()
	for i := 0; i < cycles; i++ {
		start := time.Now()
		c.lock.Lock()
		c.lock.Unlock()
		c.times = append(c.times, time.Since(start))
	}
	c.cpu += locks.CPU() - cpu
	runtime.ReadMemStats(&after)
	c.allocs += after.Mallocs - before.Mallocs
	c.bytes += after.TotalAlloc - before.TotalAlloc
}

func (c *candidate) forget(room int) {
	*c = candidate{name: c.name, lock: c.lock, times: make([]time.Duration, 0, room)}
}

func (c *candidate) addTo(figures map[string]float64) {
	count := float64(len(c.times))
	figures[c.name+"_p50_us"] = locks.Us(c.times, 0.5)
	figures[c.name+"_p99_us"] = locks.Us(c.times, 0.99)
	figures[c.name+"_cpu_us"] = float64(c.cpu.Nanoseconds()) / 1000 / count
	figures[c.name+"_allocs"] = float64(c.allocs) / count
	figures[c.name+"_bytes"] = float64(c.bytes) / count
}

func main() {
	given := locks.Given()
	cycles, blocks := given.Count("cycles"), given.Count("blocks")
	var candidates []*candidate
	for _, name := range locks.Names {
		key := "go-" + given["round"] + "-" + name
		candidates = append(candidates,
			&candidate{name: name, lock: locks.New(name, given.Count("port"), key)})
	}
	for end := time.Now().Add(given.Seconds("warmup")); time.Now().Before(end); {
		for _, one := range candidates {
			one.run(50)
		}
	}
	for _, one := range candidates {
		one.forget(cycles)
	}
	for i := 0; i < blocks; i++ {
		for k := range candidates {
			candidates[(i+k)%len(candidates)].run(cycles / blocks)
		}
	}
	figures := map[string]float64{}
	for _, one := range candidates {
		one.addTo(figures)
	}
	locks.Print(figures)
}

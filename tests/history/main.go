// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// The program history judges what processes wrote down while they used a lock: `history check
// [flags] FILES...`. Each lock name is judged by itself, by two checkers that know nothing of each
// other: what the service answered (service.go), and what its users believed (sweep.go). Semaphores
// have one of their own (permits.go). README.md says what the records mean.
//
// Exit: 0 nothing is wrong, 1 something is, 2 the input or the flags cannot be used, 3 undecided.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	undecided = "undecided"
	shown     = 5 // findings of one checker and name
)

type options struct {
	slack   int64 // ns: how late a server may notice an end
	isFifo  bool
	calm    int64 // ns: when the faults ended; liveness is judged from then on
	serve   int64 // ns: 0 is not judged
	timeout time.Duration
}

type finding struct {
	name, checker, text string
	lines               []string
}

func judge(h *history, o options) []finding {
	leases := leasesOf(h, o.slack)
	var all [][]finding
	if isSemaphore(h) {
		all = [][]finding{checkPermits(h, leases)}
	} else {
		all = [][]finding{checkService(h, leases, o), checkBelief(h, leases)}
	}
	if o.isFifo {
		all = append(all, checkOrder(h))
	}
	if o.serve > 0 {
		all = append(all, checkLiveness(h, leases, o.calm, o.serve))
	}
	var found []finding
	for _, of := range all {
		found = append(found, of[:min(len(of), shown)]...)
	}
	return found
}

func check(arguments []string, out io.Writer) int {
	flags := flag.NewFlagSet("history check", flag.ContinueOnError)
	flags.SetOutput(out)
	slack := flags.Int64("lease-slack-ms", 1000, "how late a server may notice the end of a lease")
	isFifo := flags.Bool("fifo", false, "judge the order of waiters: only without faults")
	calm := flags.Int64("calm-ns", 0, "when the faults had ended")
	serve := flags.Int64("serve-ms", 0, "from then on somebody is served within this; 0: not judged")
	timeout := flags.Duration("timeout", 30*time.Second, "for the service checker, of each name")
	if flags.Parse(arguments) != nil || flags.NArg() == 0 {
		fmt.Fprintln(out, "usage: history check [flags] FILES...")
		return 2
	}
	began := time.Now()
	histories, err := load(flags.Args())
	if err != nil {
		fmt.Fprintln(out, "history:", err)
		return 2
	}
	o := options{*slack * ms, *isFifo, *calm, *serve * ms, *timeout}
	status, operations, count := 0, 0, 0
	for _, h := range histories {
		operations += len(h.ops)
		for _, f := range judge(h, o) {
			count++
			if f.checker == undecided && status == 0 {
				status = 3
			} else if f.checker != undecided {
				status = 1
			}
			fmt.Fprintf(out, "lock %q: %s: %s\n", f.name, f.checker, f.text)
			for _, line := range f.lines {
				fmt.Fprintln(out, "   ", line)
			}
		}
	}
	fmt.Fprintf(out, "history: %d locks, %d operations, %d findings, %.1f s\n", len(histories),
		operations, count, time.Since(began).Seconds())
	return status
}

func main() {
	if len(os.Args) < 2 || os.Args[1] != "check" {
		fmt.Fprintln(os.Stderr, "usage: history check [flags] FILES...")
		os.Exit(2)
	}
	os.Exit(check(os.Args[2:], os.Stdout))
}

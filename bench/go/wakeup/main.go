// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// One of two processes that pass a lock to and fro: when did it ask, have it, and begin to give it
// back.
//
//	port name   the server, and the lock
//	library     as bench/go/locks names it
//	hold        seconds for which it is held; after half of that the other one waits for it
//	turns       how many
//
// Prints for each turn three times of the host's clock, in ns.
package main

import (
	"time"

	"redlatch/bench/locks"
)

type turn struct {
	Asked    int64 `json:"asked_ns"`
	Got      int64 `json:"got_ns"`
	Released int64 `json:"released_ns"`
}

func main() {
	given := locks.Given()
	lock := locks.New(given["library"], given.Count("port"), given["name"])
	hold := given.Seconds("hold")
	turns := make([]turn, given.Count("turns"))
	for i := range turns {
		turns[i].Asked = time.Now().UnixNano()
		lock.Lock()
		turns[i].Got = time.Now().UnixNano()
		time.Sleep(hold)
		turns[i].Released = time.Now().UnixNano()
		lock.Unlock()
		// Long enough for the other one to have it, however it waits.
		time.Sleep(hold / 2)
	}
	locks.Print(map[string]any{"rows": turns})
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"redlatch.io/redlatch"
)

// doLock makes a lock, whose options are looked at here.
func doLock(v values) answer {
	l := &lock{kind: v["kind"], name: v["name"], owner: ownOwner(v["owner"]), permits: 1}
	for key, value := range v {
		option, isAllowed := l.option(key, value)
		if !isAllowed {
			return answer{status: redlatch.ErrInvalid}
		}
		if option != nil {
			l.options = append(l.options, option)
		}
	}
	locks[v["id"]] = l
	return l.checkOptions()
}

// option is nil for what is none in Go, or is so by not saying anything.
func (l *lock) option(key, value string) (option redlatch.Option, isAllowed bool) {
	number, _ := strconv.ParseInt(value, 10, 32)
	switch key {
	case "ttl_ms":
		return redlatch.TTL(milliseconds(value)), true
	case "max_hold_ms":
		return redlatch.MaxHold(milliseconds(value)), true
	case "max_local_handoffs":
		return redlatch.MaxLocalHandoffs(int32(number)), true
	case "yield_every":
		return redlatch.YieldEvery(int32(number)), true
	case "yield_ms":
		return redlatch.YieldFor(milliseconds(value)), true
	case "min_replicas":
		return redlatch.MinReplicas(int32(number)), true
	case "sync_timeout_ms":
		return redlatch.SyncTimeout(milliseconds(value)), true
	case "retain_ms":
		return retain(milliseconds(value)), true
	case "label":
		return redlatch.Label(value), true
	case "format":
		return redlatch.InFormat(redlatch.Format(value)), true
	case "owner":
		if l.kind == "reentrant" {
			return nil, true
		}
		return redlatch.Owner(l.owner), true
	case "renew":
		if number == 0 {
			return redlatch.NoRenew(), true
		}
		return nil, number == 1
	case "confirm":
		if number == 1 {
			return redlatch.Confirm(), true
		}
		return nil, number == 0
	case "permits":
		l.permits = number
		return nil, l.kind == "semaphore"
	case "names":
		l.names = namesOf(value)
		return nil, l.kind == "all"
	case "limit":
		l.limit = number
		return l.ofQuorum(key, value), l.kind == "semaphore"
	}
	return nil, key == "id" || key == "kind" || key == "name"
}

// namesOf reads "a,b:read".
func namesOf(value string) (names []redlatch.NamedMode) {
	for _, name := range strings.Split(value, ",") {
		if read, isRead := strings.CutSuffix(name, ":read"); isRead {
			names = append(names, redlatch.Read(read))
		} else if name != "" {
			names = append(names, redlatch.Write(name))
		}
	}
	return names
}

// ofQuorum is for a Redlock, which has no semaphores; it refuses the option itself.
func (l *lock) ofQuorum(key, value string) redlatch.Option {
	if client == nil {
		return redlatch.Set(key, value)
	}
	return nil
}

// checkOptions asks a client that was closed: it looks at them first.
func (l *lock) checkOptions() answer {
	closed, err := redlatch.Open("redis://localhost")
	if err != nil {
		return answered(err)
	}
	_ = closed.Close()
	try := closed.TryLock
	switch l.kind {
	case "reentrant":
		try = closed.Reentrant(l.owner).TryLock
	case "semaphore":
		_, try = l.waysOfSemaphore(closed)
	case "all":
		_, try = l.waysOfAll(closed)
	}
	_, err = try(context.Background(), "options", l.options...)
	if errors.Is(err, redlatch.ErrClosed) {
		return answer{}
	}
	return answered(err)
}

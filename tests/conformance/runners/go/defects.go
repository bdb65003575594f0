// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"redlatch.io/redlatch"
)

// defect is what a careless change of the binding would do, as its users see it. Without one each
// function here gives back what it was given.
var defect = os.Getenv("REDLATCH_RUNNER_DEFECT")

// cut: a name that goes through C as a string.
func cut(name string) string {
	if defect == "cut_at_nul" {
		name, _, _ = strings.Cut(name, "\x00")
	}
	return name
}

// ownOwner: an owner that other processes do not have.
func ownOwner(owner string) string {
	if defect == "own_owner" {
		return fmt.Sprintf("%d-%s", os.Getpid(), owner)
	}
	return owner
}

// otherMode: the wrong one of two functions.
func otherMode(op string) string {
	switch {
	case defect == "read_as_write" && op == "acquire_read":
		return "acquire_write"
	case defect == "write_as_read" && op == "acquire_write":
		return "acquire_read"
	}
	return op
}

// unrecalled: a channel that nobody closes.
func unrecalled(recalled <-chan struct{}) <-chan struct{} {
	if defect == "deaf" {
		return nil
	}
	return recalled
}

// retain: an option that is lost on the way.
func retain(length time.Duration) redlatch.Option {
	if defect == "forget_retain" {
		return nil
	}
	return redlatch.Retain(length)
}

// oneNode: a lock on one of several servers.
func oneNode(urls []string) []string {
	if defect == "one_node" {
		return urls[:1]
	}
	return urls
}

// mistaken: a wrong line in the table of statuses.
func mistaken(status redlatch.Status) redlatch.Status {
	wrong := map[redlatch.Status]redlatch.Status{
		redlatch.ErrBusy:        redlatch.ErrTimeout,
		redlatch.ErrStillHeld:   redlatch.OK,
		redlatch.ErrLost:        redlatch.ErrNotHeld,
		redlatch.ErrDeadlock:    redlatch.ErrBusy,
		redlatch.ErrAlreadyHeld: redlatch.ErrBusy,
	}
	if other, isWrong := wrong[status]; isWrong && defect == "wrong_status" {
		return other
	}
	return status
}

// unheard: the caller is told that its context has ended, and what it started goes on.
func unheard(ctx context.Context,
	take func(context.Context) (*redlatch.Lease, error)) (*redlatch.Lease, error) {
	if defect != "ignore_cancel" {
		return take(ctx)
	}
	type result struct {
		lease *redlatch.Lease
		err   error
	}
	done := make(chan result, 1)
	go func() {
		lease, err := take(context.WithoutCancel(ctx))
		done <- result{lease, err}
	}()
	select {
	case r := <-done:
		return r.lease, r.err
	case <-ctx.Done():
		return nil, &redlatch.Error{Status: redlatch.ErrCancelled, Cause: context.Cause(ctx)}
	}
}

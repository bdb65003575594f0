// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestPausesDoubleUntilATermHasLasted(t *testing.T) {
	var delays backOff
	for i, one := range []struct{ lasted, pause time.Duration }{
		{0, 1}, {0, 2}, {30, 4}, {0, 8}, {0, 16}, {0, 30}, {0, 30}, {31, 1}, {0, 2}, {31, 1},
	} {
		pause := delays.after(one.lasted * time.Second)
		if pause != one.pause*time.Second {
			t.Fatalf("pause %d is %v", i, pause)
		}
	}
}

// A pause of an hour would exceed the limit of the tests.
func TestAPauseEndsWithItsContextOrItsClient(t *testing.T) {
	client, err := Open("redis://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	client.common.pause(ctx, time.Hour)
	time.AfterFunc(time.Millisecond, func() { _ = client.Close() })
	client.common.pause(context.Background(), time.Hour)
	_ = client.Close()
}

func TestTheErrorOfARecallEndsNoLead(t *testing.T) {
	for _, one := range []struct {
		err    error
		isOnly bool
	}{
		{nil, true}, {context.Canceled, true}, {ErrRecalled, true},
		{fmt.Errorf("a step: %w", ErrRecalled), true}, {context.DeadlineExceeded, false},
		{errors.New("of work"), false}, {&Error{Status: ErrLost}, false},
	} {
		if isOfRecall(one.err) != one.isOnly {
			t.Error(one.err)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"redlatch.io/redlatch"
)

// Runs of once and flights, which a Redlock does not have.

func doOnceForget(v values) answer {
	if client == nil {
		return answer{status: redlatch.ErrUnsupported}
	}
	return answered(client.OnceForget(context.Background(), cut(v["name"])))
}

// orForever is v whose wait has no limit if it does not say so.
func (v values) orForever() values {
	if _, isGiven := v["wait_ms"]; !isGiven {
		v["wait_ms"] = "-1"
	}
	return v
}

// work takes as long as it is to, and ends as it is to.
func (v values) work(ctx context.Context, failure error) error {
	select {
	case <-time.After(v.duration("for_ms")):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if v["run"] == "fail" {
		return failure
	}
	return nil
}

func (l *lock) onceOptions(v values) []redlatch.OnceOption {
	options := []redlatch.OnceOption{redlatch.Key(v["key"])}
	if tries, err := strconv.ParseInt(v["tries"], 10, 32); err == nil {
		options = append(options, redlatch.Tries(int32(tries)))
	}
	if v.isTry() {
		options = append(options, redlatch.SkipIfBusy())
	}
	for _, option := range l.options {
		options = append(options, option)
	}
	return options
}

func doOnce(l *lock, v values) answer {
	if client == nil {
		return answer{status: redlatch.ErrUnsupported}
	}
	ctx, cancel := v.orForever().context()
	defer cancel()
	refused := errors.New("refused")
	err := client.Once(ctx, cut(l.name), v.duration("every_ms"),
		func(ctx context.Context, _ *redlatch.Lease) error { return v.work(ctx, refused) },
		l.onceOptions(v)...)
	done := answer{}
	switch {
	case err == refused:
		done.add("ran", "failed")
	case err == nil:
		done.add("ran", "ok")
	default:
		return answered(err)
	}
	return done
}

func doFlight(l *lock, v values) answer {
	if client == nil {
		return answer{status: redlatch.ErrUnsupported}
	}
	ctx, cancel := v.orForever().context()
	defer cancel()
	refused, computed := errors.New(v["value"]), 0
	value, err := client.SingleFlight(ctx, cut(l.name), v.duration("ttl_ms"),
		func(ctx context.Context) ([]byte, error) {
			computed = 1
			return []byte(v["value"]), v.work(ctx, refused)
		}, l.options...)
	done := answer{}
	var failure *redlatch.SingleFlightError
	switch {
	case err == nil:
		done.add("value", string(value))
		done.add("computed", computed)
	case err == refused:
		done.add("failed", 1)
		done.add("text", refused)
	case errors.As(err, &failure):
		done.add("failed", 1)
		done.add("text", failure.Text)
		done.add("type", failure.Type)
	default:
		return answered(err)
	}
	return done
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"context"
	"runtime"
	"strings"

	"redlatch.io/redlatch/internal/rlc"
)

// Redlock acquires locks on most of several independent servers, so that the locks survive the
// failure of the others. docs/redlock.md has the promises and limits. Any goroutine may use it.
type Redlock struct{ base }

// OpenRedlock makes a Redlock of the servers at urls, an odd number of them. It does not touch the
// network. The error is ErrInvalid if a URL or an option is wrong, the number of URLs is even, or
// two are the same.
func OpenRedlock(urls []string, options ...ClientOption) (*Redlock, error) {
	c := newCall("open", "")
	defer c.free()
	made, err := c.makeClientOptions(options)
	if err != nil {
		return nil, err
	}
	defer rlc.Client_options_free(made)
	handle := rlc.Redlock_open(lines(urls), made, c.handle)
	if handle == 0 {
		return nil, c.failure()
	}
	redlock := &Redlock{base{newCommon(nil), handle, newOrigin()}}
	runtime.SetFinalizer(redlock, func(r *Redlock) { r.leave("redlock") })
	return redlock, nil
}

// lines joins the URLs, one to a line. An empty URL stays an empty line.
func lines(urls []string) string {
	if len(urls) == 0 {
		return ""
	}
	return strings.Join(urls, "\n") + "\n"
}

// DialRedlock makes a Redlock and connects it, until most of the servers may vote or ctx ends.
// Without a deadline it tries each server once.
func DialRedlock(ctx context.Context, urls []string, options ...ClientOption) (*Redlock, error) {
	redlock, err := OpenRedlock(urls, options...)
	if err != nil {
		return nil, err
	}
	if err := redlock.Connect(ctx); err != nil {
		_ = redlock.Close()
		return nil, err
	}
	return redlock, nil
}

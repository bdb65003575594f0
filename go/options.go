// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"fmt"
	"time"

	"redlatch.io/redlatch/internal/rlc"
)

// ClientOption is an option of a Client or a Redlock. It wins over what the URL says.
type ClientOption func(options rlc.ClientOptions, err rlc.Error) int

// WithOption sets an option by the name that it has in a URL: "timeout", "holder",
// "password_file". docs/url.md has them all; those that only a Redlock has are in docs/redlock.md.
func WithOption(name, value string) ClientOption {
	return func(options rlc.ClientOptions, err rlc.Error) int {
		return rlc.Client_options_set(options, name, value, err)
	}
}

// WithNamespace puts a prefix before every key.
func WithNamespace(namespace string) ClientOption { return WithOption("namespace", namespace) }

// FromEnv takes what the environment says for what neither the URL nor another option says: the
// server from REDLATCH_URL, else VALKEY_URL, else REDIS_URL, if the URL is empty;
// REDLATCH_NAMESPACE; and the password from the file REDLATCH_PASSWORD_FILE, else REDISCLI_AUTH.
// Nothing else here looks at the environment.
func FromEnv() ClientOption { return rlc.Client_options_set_from_env }

func (c call) makeClientOptions(options []ClientOption) (rlc.ClientOptions, error) {
	made := rlc.Client_options_new()
	for _, option := range options {
		if option(made, c.handle) != int(OK) {
			rlc.Client_options_free(made)
			return 0, c.failure()
		}
	}
	return made, nil
}

// Option is an option of one acquisition. What each is by default suits most.
type Option func(options rlc.AcquireOptions) error

// TTL is how long the server keeps the lock without renewal, 10 ms to 7 days (30 s). It is renewed
// at a third of that while it is held, whatever it is.
func TTL(ttl time.Duration) Option {
	return func(options rlc.AcquireOptions) error {
		status := rlc.Acquire_options_set_ttl_ms(options, ttl.Milliseconds())
		return allowed(status, "TTL", ttl, ms(rlc.RL_MIN_TTL_MS), ms(rlc.RL_MAX_TTL_MS))
	}
}

// NoRenew lets the lease end by itself, as lost, when its TTL is over.
func NoRenew() Option {
	return func(options rlc.AcquireOptions) error {
		rlc.Acquire_options_set_renew(options, 0)
		return nil
	}
}

// MaxHold ends the lease, as lost, after so long at the latest: up to 7 days, 0 for never (0).
func MaxHold(limit time.Duration) Option {
	return func(options rlc.AcquireOptions) error {
		limitMs := limit.Milliseconds()
		if limitMs == 0 && limit > 0 {
			limitMs = 1 // 0 is no limit.
		}
		status := rlc.Acquire_options_set_max_hold_ms(options, limitMs)
		return allowed(status, "MaxHold", limit, time.Duration(0), ms(rlc.RL_MAX_TTL_MS))
	}
}

// Confirm has a lock that was handed over confirmed by the server before Lock returns: one more
// round trip.
func Confirm() Option {
	return func(options rlc.AcquireOptions) error {
		rlc.Acquire_options_set_confirm(options, 1)
		return nil
	}
}

// MaxLocalHandoffs is how many times in a row a lock may pass between callers of one client before
// others have their turn: 0 to 31 (16). 0: all wait in strict order.
func MaxLocalHandoffs(grants int32) Option {
	return func(options rlc.AcquireOptions) error {
		status := rlc.Acquire_options_set_max_local_handoffs(options, int(grants))
		return allowed(status, "MaxLocalHandoffs", grants, 0, rlc.RL_MAX_LOCAL_HANDOFFS)
	}
}

// YieldEvery is after how many grants in a row the lock is left free for a while, for libraries
// that poll for it: 0 to 1,000,000, 0 for never (16, once one of them was seen to hold it).
func YieldEvery(grants int32) Option {
	return func(options rlc.AcquireOptions) error {
		status := rlc.Acquire_options_set_yield_every(options, int(grants))
		return allowed(status, "YieldEvery", grants, 0, 1000000)
	}
}

// YieldFor is for how long the lock is left free: 1 ms to a minute (150 ms).
func YieldFor(window time.Duration) Option {
	return func(options rlc.AcquireOptions) error {
		status := rlc.Acquire_options_set_yield_ms(options, window.Milliseconds())
		return allowed(status, "YieldFor", window, time.Millisecond, time.Minute)
	}
}

// Label is a text that Inspect shows for the holder, of at most 256 bytes.
func Label(label string) Option {
	return func(options rlc.AcquireOptions) error {
		status := rlc.Acquire_options_set_label(options, label)
		return allowedBytes(status, "Label", label, 0, rlc.RL_MAX_LABEL_BYTES)
	}
}

// Owner names who acquires, 1 to 256 bytes of any values: an owner that reads may read again past
// those who wait, and what would wait for itself is ErrAlreadyHeld. Without one, it waits.
func Owner(owner string) Option {
	return func(options rlc.AcquireOptions) error {
		status := rlc.Acquire_options_set_owner(options, owner)
		return allowedBytes(status, "Owner", owner, 1, rlc.RL_MAX_OWNER_BYTES)
	}
}

func reentrant(owner string) Option {
	return func(options rlc.AcquireOptions) error {
		status := rlc.Acquire_options_set_reentrant(options, owner)
		return allowedBytes(status, "the owner", owner, 1, rlc.RL_MAX_OWNER_BYTES)
	}
}

// Format is how a lock stands in its key. All who use a lock must agree on it.
type Format int

const (
	// FormatString is a string: mutexes, read-write locks, and most other libraries.
	FormatString Format = rlc.RL_FORMAT_STRING
	// FormatHash is a hash of owner and count: reentrant locks, and Redisson's RLock.
	FormatHash Format = rlc.RL_FORMAT_HASH
	// FormatHashRW is that of Redisson's RReadWriteLock; the TTL is at most 30 s there.
	FormatHashRW Format = rlc.RL_FORMAT_HASH_RW
)

// InFormat chooses the format (FormatString): docs/interop.md says which one for which library.
func InFormat(format Format) Option {
	return func(options rlc.AcquireOptions) error {
		status := rlc.Acquire_options_set_format(options, int(format))
		return allowed(status, "InFormat", int(format), FormatString, FormatHashRW)
	}
}

func ms(count int64) time.Duration { return time.Duration(count) * time.Millisecond }

func allowed(status int, what string, value, least, most any) error {
	if Status(status) == OK {
		return nil
	}
	return refused(status, fmt.Sprintf("%s(%v): allowed are %v to %v", what, value, least, most))
}

func allowedBytes(status int, what, value string, least, most int) error {
	if Status(status) == OK {
		return nil
	}
	return refused(status, fmt.Sprintf("%s of %d bytes: allowed are %d to %d", what, len(value),
		least, most))
}

func refused(status int, text string) error {
	if Status(status) == ErrNoMemory {
		text = ""
	}
	return &Error{Status: Status(status), Message: text}
}

// makeOptions gives 0, all the defaults, if there are none.
func makeOptions(options []Option) (rlc.AcquireOptions, error) {
	if len(options) == 0 {
		return 0, nil
	}
	made := rlc.Acquire_options_new()
	if made == 0 {
		return 0, &Error{Status: ErrNoMemory}
	}
	for _, option := range options {
		if err := option(made); err != nil {
			rlc.Acquire_options_free(made)
			return 0, err
		}
	}
	return made, nil
}

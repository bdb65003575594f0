// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"fmt"
	"strconv"
	"time"

	"redlatch.io/redlatch/internal/rlc"
)

// ClientOption is an option of a Client or a Redlock. It wins over the URL.
type ClientOption func(options rlc.ClientOptions, err rlc.Error) int

// WithOption sets an option by its name in a URL, such as "command_timeout", "holder" or
// "password_file". docs/options.md lists them.
func WithOption(name, value string) ClientOption {
	return func(options rlc.ClientOptions, err rlc.Error) int {
		return rlc.Client_options_set(options, name, value, err)
	}
}

// WithNamespace puts a prefix before every key.
func WithNamespace(namespace string) ClientOption { return WithOption("namespace", namespace) }

// FromEnv reads the variables of docs/options.md, for options that neither the URL nor another
// option sets. Beside it, only the default of [CandidateID] reads the environment.
func FromEnv() ClientOption { return rlc.Client_options_set_from_env }

func (c call) makeClientOptions(options []ClientOption) (rlc.ClientOptions, error) {
	made := rlc.Client_options_new()
	for i, option := range options {
		if option == nil {
			rlc.Client_options_free(made)
			return 0, nilOption(i)
		}
		if option(made, c.handle) != int(OK) {
			rlc.Client_options_free(made)
			return 0, c.failure()
		}
	}
	return made, nil
}

// Option is an option of one acquisition; docs/options.md lists them. The call that uses an option
// reports a wrong value.
type Option func(options rlc.AcquireOptions)

// Set sets an option of an acquisition by its name, as in docs/options.md.
func Set(name, value string) Option {
	return func(options rlc.AcquireOptions) { rlc.Acquire_options_set(options, name, value, 0) }
}

func reentrant(owner string) Option {
	return func(options rlc.AcquireOptions) {
		rlc.Acquire_options_set_owner(options, owner)
		rlc.Acquire_options_set_reentrant(options, 1)
	}
}

func ms(count int64) time.Duration { return time.Duration(count) * time.Millisecond }

// wholeMs rounds away from zero: 0 often has a meaning of its own.
func wholeMs(duration time.Duration) int64 {
	count := duration.Milliseconds()
	switch rest := duration % time.Millisecond; {
	case rest > 0:
		count++
	case rest < 0:
		count--
	}
	return count
}

// partText shows a duration below a millisecond, which is mostly a number without a unit; "" for
// any other, and for 0.
func partText(duration time.Duration) string {
	if duration == 0 || duration.Abs() >= time.Millisecond {
		return ""
	}
	return strconv.FormatInt(duration.Nanoseconds(), 10) + "ns"
}

// durationText is for the library, which refuses what it cannot count in milliseconds.
func durationText(duration time.Duration) string {
	if shown := partText(duration); shown != "" {
		return shown
	}
	return strconv.FormatInt(wholeMs(duration), 10) + "ms"
}

// makeOptions returns 0, all the defaults, if there are no options.
func makeOptions(options []Option) (rlc.AcquireOptions, error) {
	if len(options) == 0 {
		return 0, nil
	}
	made := rlc.Acquire_options_new()
	if made == 0 {
		return 0, &Error{Status: ErrNoMemory}
	}
	for i, option := range options {
		if option == nil {
			rlc.Acquire_options_free(made)
			return 0, nilOption(i)
		}
		option(made)
	}
	return made, nil
}

func nilOption(place int) error {
	message := fmt.Sprintf("option %d must not be nil", place+1)
	return &Error{Op: "open", Status: ErrInvalid, Message: message}
}

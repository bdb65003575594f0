// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redlatch.io/redlatch"
)

// rotate gives the user "app" this password, and no other. A client that is closed may still ask
// for one when the server has ended.
func rotate(server *server, password string) error {
	_, err := server.tryToAsk("ACL", "SETUSER", "app", "reset", "on", ">"+password, "~*", "&*",
		"+@all")
	return err
}

type fetch = func(context.Context) (redlatch.Credentials, error)

// fetching is a client, not connected yet, that gets its credentials by fetch.
func fetching(
	t *testing.T, url string, fetch fetch, options ...redlatch.ClientOption,
) *redlatch.Client {
	client, err := redlatch.Open(url, options...)
	must(t, err)
	t.Cleanup(func() { must(t, client.Close()) })
	_, err = client.CredentialsFrom(fetch)
	must(t, err)
	return client
}

func TestAnErrorOfTheFetchIsInTheErrorOfConnect(t *testing.T) {
	client, err := redlatch.Open(url)
	must(t, err)
	defer client.Close()
	stop, err := client.CredentialsFrom(func(context.Context) (redlatch.Credentials, error) {
		return redlatch.Credentials{}, errors.New("vault is sealed")
	})
	must(t, err)
	defer stop()
	err = client.Connect(context.Background())
	if !errors.Is(err, redlatch.ErrUnavailable) || !strings.Contains(err.Error(), "vault is sealed") {
		t.Fatal(err)
	}
}

// reasonFor is what a client says that is given these credentials.
func reasonFor(t *testing.T, fetched redlatch.Credentials) string {
	client := fetching(t, url, func(context.Context) (redlatch.Credentials, error) {
		return fetched, nil
	})
	err := client.Connect(background)
	is(t, errors.Is(err, redlatch.ErrUnavailable), "%v", err)
	return err.Error()
}

func TestExpiredCredentialsAreRefused(t *testing.T) {
	for _, valid := range []time.Duration{0, -1, -time.Millisecond, -1500 * time.Microsecond,
		-2 * time.Millisecond, -time.Hour, time.Second - 1, time.Until(time.Time{})} {
		said := reasonFor(t, redlatch.Credentials{User: "default", Password: "any", Valid: valid})
		allowed := fmt.Sprintf("Valid must be 1s or more, or NoEnd (got %v)", valid)
		is(t, strings.HasSuffix(said, allowed), "%v: %v", valid, said)
	}
	said := reasonFor(t, redlatch.Credentials{Valid: redlatch.NoEnd})
	is(t, strings.Contains(said, "password must be 1 to"), "%v", said)
}

type wordless struct{}

func (*wordless) Error() string { panic("no text") }

func TestAFetchThatFailsInAnyWayIsRepeated(t *testing.T) {
	var calls atomic.Int64
	server := startServer(t)
	client := fetching(t, server.url(), func(context.Context) (redlatch.Credentials, error) {
		switch count := calls.Add(1); count {
		case 2:
			runtime.Goexit()
		case 3:
			return redlatch.Credentials{}, new(wordless)
		case 5:
			return redlatch.Credentials{User: "app", Password: "any", Valid: redlatch.NoEnd}, nil
		default:
			if err := rotate(server, "any"); err != nil {
				return redlatch.Credentials{}, err
			}
		}
		return redlatch.Credentials{User: "app", Password: "any", Valid: time.Second}, nil
	})
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	must(t, client.Connect(ctx))
	for calls.Load() < 5 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	is(t, calls.Load() == 5, "fetch was called %d times", calls.Load())
	lease, err := client.Lock(ctx, "renewed")
	must(t, err)
	_, err = lease.Release(ctx)
	must(t, err)
}

func TestCloseCancelsARunningFetch(t *testing.T) {
	ended := make(chan struct{})
	client := fetching(t, url, func(ctx context.Context) (redlatch.Credentials, error) {
		defer close(ended)
		<-ctx.Done()
		return redlatch.Credentials{}, ctx.Err()
	}, redlatch.WithOption("connect_timeout", "100ms"))
	err := client.Connect(context.Background())
	if !errors.Is(err, redlatch.ErrUnavailable) {
		t.Fatal(err)
	}
	must(t, client.Close())
	<-ended
	shown := fmt.Sprintf("%v %+v %#v", redlatch.Credentials{Password: "S3cret"},
		redlatch.Credentials{Password: "S3cret"}, redlatch.Credentials{Password: "S3cret"})
	if strings.Contains(shown, "S3cret") {
		t.Fatal(shown)
	}
}

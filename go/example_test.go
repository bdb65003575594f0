// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"redlatch.io/redlatch"
)

// The server of the examples: "redis://localhost:6379" elsewhere.
var url string

func ExampleDial() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	client, err := redlatch.Dial(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	lease, err := client.Lock(ctx, "report")
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(context.WithoutCancel(ctx))
	fmt.Println(lease.Name(), lease.State())
	// Output: report HELD
}

func ExampleClient_Do() {
	ctx := context.Background()
	client, err := redlatch.Dial(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	err = client.Do(ctx, "invoices", func(ctx context.Context) error {
		// ctx ends if the lock is lost; the fence goes to what is written to.
		fmt.Println(redlatch.LeaseOf(ctx).Fence() > 0)
		return nil
	})
	if errors.Is(err, redlatch.ErrLost) {
		log.Print("others may have worked at the same time")
	}
	// Output: true
}

func ExampleDoValue() {
	ctx := context.Background()
	client, err := redlatch.Dial(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	next, err := redlatch.DoValue(ctx, client, "numbers", func(context.Context) (int, error) {
		return 42, nil
	})
	fmt.Println(next, err)
	// Output: 42 <nil>
}

func ExampleClient_TryLock() {
	ctx := context.Background()
	client, err := redlatch.Dial(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lease, err := client.TryLock(ctx, "nightly")
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)

	_, err = client.TryLock(ctx, "nightly")
	if errors.Is(err, redlatch.ErrBusy) {
		fmt.Println("another host does it")
	}
	// Output: another host does it
}

func ExampleLease_Context() {
	ctx := context.Background()
	client, err := redlatch.Dial(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lease, err := client.Lock(ctx, "leader", redlatch.TTL(3*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)

	// An operator takes it away, and the next renewal finds out.
	if err := client.ForceReleaseAny(ctx, "leader"); err != nil {
		log.Fatal(err)
	}
	<-lease.Context().Done()
	fmt.Println(errors.Is(context.Cause(lease.Context()), redlatch.ErrLost))
	// Output: true
}

func ExampleLease_Upgrade() {
	ctx := context.Background()
	client, err := redlatch.Dial(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lease, err := client.RLock(ctx, "prices")
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)
	if err := lease.Upgrade(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Mode())
	// Output: WRITE
}

func ExampleClient_Reentrant() {
	ctx := context.Background()
	client, err := redlatch.Dial(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	mine := client.Reentrant("job 17")
	for i := 0; i < 2; i++ {
		lease, err := mine.Lock(ctx, "orders")
		if err != nil {
			log.Fatal(err)
		}
		defer lease.Unlock(ctx)
		fmt.Println(lease.HoldCount())
	}
	// Output:
	// 1
	// 2
}

func ExampleClient_Semaphore() {
	ctx := context.Background()
	client, err := redlatch.Dial(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	pool := client.Semaphore("connections", 3)
	lease, err := pool.Acquire(ctx, 2)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)

	_, err = pool.TryAcquire(ctx, 2)
	if errors.Is(err, redlatch.ErrBusy) {
		fmt.Println("too few are free")
	}
	stats, err := pool.Stats(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stats.Used, "of", stats.Limit)
	// Output:
	// too few are free
	// 2 of 3
}

func ExampleClient_LockAll() {
	ctx := context.Background()
	client, err := redlatch.Dial(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lease, err := client.LockAll(ctx, []redlatch.NamedMode{
		redlatch.Write("account/17"), redlatch.Write("account/4"), redlatch.Read("rates"),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)

	fences := lease.Fences()
	fmt.Println(len(fences), fences["account/4"] > 0)
	// Output: 3 true
}

func ExampleClient_LockPath() {
	ctx := context.Background()
	client, err := redlatch.Dial(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lease, err := client.LockPath(ctx, "photos/2026/may")
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)

	_, err = client.TryLockPath(ctx, "photos/2026")
	fmt.Println("all of 2026:", errors.Is(err, redlatch.ErrBusy))
	june, err := client.TryLockPath(ctx, "photos/2026/june")
	if err != nil {
		log.Fatal(err)
	}
	defer june.Unlock(ctx)
	fmt.Println("another month:", june.Name())
	// Output:
	// all of 2026: true
	// another month: photos/2026/june
}

func ExampleClient_Once() {
	ctx := context.Background()
	client, err := redlatch.Dial(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	job := func(ctx context.Context, lease *redlatch.Lease) error {
		fmt.Println("it runs")
		return nil
	}
	for i := 0; i < 2; i++ {
		err := client.Once(ctx, "hourly", time.Hour, job)
		if errors.Is(err, redlatch.ErrSkipped) {
			fmt.Println("it has run")
		} else if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// it runs
	// it has run
}

func ExampleClient_SingleFlight() {
	ctx := context.Background()
	client, err := redlatch.Dial(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	query := func(ctx context.Context) ([]byte, error) {
		fmt.Println("slow")
		return []byte("42"), nil
	}
	for i := 0; i < 2; i++ {
		price, err := client.SingleFlight(ctx, "price", time.Minute, query)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("price:", string(price))
	}
	// Output:
	// slow
	// price: 42
	// price: 42
}

func ExampleClient_Lead() {
	ctx := context.Background() // that of signal.NotifyContext in a program
	client, err := redlatch.Dial(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	work := func(ctx context.Context, term redlatch.Term) error { // ctx ends with the term
		fmt.Println(term.ID, "leads:", term.IsLeader())
		return nil
	}
	if err := client.Lead(ctx, "sweeper", work, redlatch.CandidateID("a")); err != nil {
		log.Fatal(err)
	}
	// Output: a leads: true
}

func ExampleClient_Observe() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client, err := redlatch.Dial(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	term, err := client.Campaign(ctx, "primary", redlatch.CandidateID("a"))
	if err != nil {
		log.Fatal(err)
	}
	for leader := range client.Observe(ctx, "primary") {
		fmt.Println("leader:", leader.ID)
		if leader.IsNone() {
			return
		}
		if err := term.Unlock(ctx); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// leader: a
	// leader:
}

func ExampleClient_Locker() {
	client, err := redlatch.Dial(context.Background(), url)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	var locker sync.Locker = client.Locker("old code")
	locker.Lock()
	defer locker.Unlock()
	fmt.Println("alone")
	// Output: alone
}

func ExampleDialRedlock() {
	ctx := context.Background()
	servers := []string{url} // three or five, on hosts that do not fail together
	redlock, err := redlatch.DialRedlock(ctx, servers,
		redlatch.WithOption("restart_guard", "off")) // only since this server has just started
	if err != nil {
		log.Fatal(err)
	}
	defer redlock.Close()
	err = redlock.Do(ctx, "payments", func(context.Context) error {
		fmt.Println("on most of them")
		return nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	// Output: on most of them
}

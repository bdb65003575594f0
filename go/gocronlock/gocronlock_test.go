// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// Goal: schedulers that share a server share their jobs. Method: two schedulers of gocron, each
// with a client of its own, on one server; jobs that start at once, and end when the test has seen
// what it looks for.
package gocronlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"redlatch.io/redlatch"
	"redlatch.io/redlatch/gocronlock"
)

// patience is for what should come at once, on a machine that is busy.
const patience = 20 * time.Second

// The server of the examples: "redis://localhost:6379" elsewhere.
var url string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "rl")
	if err != nil {
		panic(err)
	}
	url = "embedded://" + folder
	// As long as it is used the server stays.
	client, err := redlatch.Dial(context.Background(), url)
	if err != nil {
		panic(err)
	}
	code := m.Run()
	_ = client.Close()
	_ = os.RemoveAll(folder)
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func dial(t *testing.T) *redlatch.Client {
	t.Helper()
	client, err := redlatch.Dial(context.Background(), url, redlatch.WithNamespace(t.Name()))
	must(t, err)
	t.Cleanup(func() { must(t, client.Close()) })
	return client
}

func await[T any](t *testing.T, what <-chan T) T {
	t.Helper()
	select {
	case found := <-what:
		return found
	case <-time.After(patience):
		t.Fatal("it did not come to that")
		panic("unreachable")
	}
}

func start(t *testing.T, option gocron.SchedulerOption) gocron.Scheduler {
	t.Helper()
	scheduler, err := gocron.NewScheduler(option)
	must(t, err)
	t.Cleanup(func() { must(t, scheduler.Shutdown()) })
	scheduler.Start()
	return scheduler
}

// runOnce has scheduler run work now, and says how it went: nil, or why the run was left out.
func runOnce(t *testing.T, scheduler gocron.Scheduler, name string, work any) <-chan error {
	t.Helper()
	done := make(chan error, 2)
	_, err := scheduler.NewJob(
		gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()),
		gocron.NewTask(work),
		gocron.WithName(name),
		gocron.WithEventListeners(
			gocron.AfterJobRuns(func(uuid.UUID, string) { done <- nil }),
			gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { done <- err }),
			gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { done <- err }),
		),
	)
	must(t, err)
	return done
}

func TestTwoSchedulersRunEachJobOnce(t *testing.T) {
	var schedulers []gocron.Scheduler
	for i := 0; i < 2; i++ {
		locker := gocronlock.New(dial(t), time.Hour)
		schedulers = append(schedulers, start(t, gocron.WithDistributedLocker(locker)))
	}
	const jobs = 20
	var mu sync.Mutex
	runs := map[string]int{}
	var ends [jobs][]<-chan error
	for i := range ends {
		name := fmt.Sprint("job-", i)
		for _, scheduler := range schedulers {
			ends[i] = append(ends[i], runOnce(t, scheduler, name, func() {
				mu.Lock()
				defer mu.Unlock()
				runs[name]++
			}))
		}
	}
	for i, both := range ends {
		first, second := await(t, both[0]), await(t, both[1])
		if first == nil {
			first, second = second, first
		}
		if second != nil || !errors.Is(first, redlatch.ErrBusy) {
			t.Errorf("job-%d: %v, %v", i, second, first)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for name, count := range runs {
		if count != 1 || len(runs) != jobs {
			t.Fatalf("%s ran %d times, of %d jobs", name, count, len(runs))
		}
	}
}

func TestALockIsKeptForMinHold(t *testing.T) {
	ctx := context.Background()
	const minHold = 300 * time.Millisecond
	locker, other := gocronlock.New(dial(t), minHold), gocronlock.New(dial(t), 0)
	since := time.Now()
	lock, err := locker.Lock(ctx, "report")
	must(t, err)
	must(t, lock.Unlock(ctx))
	if locker.Lease("report") != nil {
		t.Error("it does not run any more")
	}
	for {
		again, err := other.Lock(ctx, "report")
		if err == nil {
			must(t, again.Unlock(ctx))
			break
		}
		if held := time.Since(since); !errors.Is(err, redlatch.ErrBusy) || held > patience {
			t.Fatal(held, err)
		}
	}
	if held := time.Since(since); held < minHold {
		t.Error("free again after", held)
	}
	// Without one it is free at once.
	lock, err = other.Lock(ctx, "report")
	must(t, err)
	must(t, lock.Unlock(ctx))
	lock, err = locker.Lock(ctx, "report")
	must(t, err)
	must(t, lock.Unlock(ctx))
}

func TestAJobSeesThatItsLockIsLost(t *testing.T) {
	ctx := context.Background()
	ours, theirs := dial(t), dial(t)
	locker := gocronlock.New(ours, time.Hour, redlatch.TTL(3*time.Second))
	other := gocronlock.New(theirs, 0)
	began, end := make(chan int64), make(chan struct{})
	ended := runOnce(t, start(t, gocron.WithDistributedLocker(locker)), "report", func() error {
		lease := locker.Lease("report")
		began <- lease.Fence()
		<-lease.Context().Done()
		<-end
		return context.Cause(lease.Context())
	})
	fence := await(t, began)
	must(t, theirs.ForceReleaseAny(ctx, "report"))
	lock, err := other.Lock(ctx, "report")
	must(t, err)
	held := other.Lease("report")
	if held.Fence() <= fence {
		t.Error("fences", fence, held.Fence())
	}
	close(end)
	if err := await(t, ended); !errors.Is(err, redlatch.ErrLost) {
		t.Error(err)
	}
	// gocron unlocks after it has told: that touches nobody else's lock, and waits for nothing.
	for end := time.Now().Add(patience); locker.Lease("report") != nil; {
		if time.Now().After(end) {
			t.Fatal("it is not unlocked")
		}
		time.Sleep(time.Millisecond)
	}
	info, err := theirs.Inspect(ctx, "report")
	must(t, err)
	if len(info.Holders) != 1 || info.Holders[0].Token != held.Token() {
		t.Error(info)
	}
	must(t, lock.Unlock(ctx))
}

func TestUnlockOfALostRunKeepsTheLeaseOfALaterRun(t *testing.T) {
	ctx := context.Background()
	client := dial(t)
	locker := gocronlock.New(client, 0)
	first, err := locker.Lock(ctx, "report")
	must(t, err)
	must(t, client.ForceReleaseAny(ctx, "report"))
	second, err := locker.Lock(ctx, "report")
	must(t, err)
	if err := first.Unlock(ctx); !errors.Is(err, redlatch.ErrLost) {
		t.Error(err)
	}
	if lease := locker.Lease("report"); lease == nil || lease.Check() != nil {
		t.Error("the second one runs")
	}
	must(t, second.Unlock(ctx))
}

func TestJobsAreSkippedWhileTheServerIsUnreachable(t *testing.T) {
	client, err := redlatch.Open("redis://127.0.0.1:1")
	must(t, err)
	defer client.Close()
	scheduler := start(t, gocron.WithDistributedLocker(gocronlock.New(client, 0)))
	ended := runOnce(t, scheduler, "report", func() { t.Error("it ran") })
	if err := await(t, ended); !errors.Is(err, redlatch.ErrUnavailable) {
		t.Error(err)
	}
}

// asked is an Elector whose answers the test sees as well.
type asked struct {
	*gocronlock.Elector
	answers chan error
}

func (a asked) IsLeader(ctx context.Context) error {
	err := a.Elector.IsLeader(ctx)
	a.answers <- err
	return err
}

func TestOneSchedulerLeads(t *testing.T) {
	clients := []*redlatch.Client{dial(t), dial(t)}
	var electors []asked
	var schedulers []gocron.Scheduler
	for _, client := range clients {
		elector := asked{gocronlock.NewElector(client, "leader"), make(chan error, 1)}
		electors = append(electors, elector)
		schedulers = append(schedulers, start(t, gocron.WithDistributedElector(elector)))
	}
	for i := 0; i < 5; i++ {
		must(t, await(t, runOnce(t, schedulers[1], "run", func() {})))
		must(t, await(t, electors[1].answers))
		runOnce(t, schedulers[0], "left out", func() { t.Error("it ran") })
		if err := await(t, electors[0].answers); !errors.Is(err, redlatch.ErrBusy) {
			t.Fatal(err)
		}
	}
	if electors[0].Lease() != nil || electors[1].Lease().Check() != nil {
		t.Error("the second one leads")
	}
	// The lead passes on with the client.
	must(t, clients[1].Close())
	must(t, await(t, runOnce(t, schedulers[0], "run", func() {})))
	must(t, await(t, electors[0].answers))
	runOnce(t, schedulers[1], "left out", func() { t.Error("it ran") })
	if err := await(t, electors[1].answers); !errors.Is(err, redlatch.ErrClosed) {
		t.Error(err)
	}
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package gocronlock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/go-co-op/gocron/v2"

	"redlatch.io/redlatch"
	"redlatch.io/redlatch/gocronlock"
)

func Example() {
	client, err := redlatch.Dial(context.Background(), url)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	locker := gocronlock.New(client, time.Second)
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		log.Fatal(err)
	}

	done := make(chan struct{})
	report := func(ctx context.Context) {
		// Of all hosts that run this program, one is here. The context ends when the lock is lost.
		lease := locker.Lease("report")
		fmt.Println(lease.Name(), lease.Context().Err())
		close(done)
	}
	_, err = scheduler.NewJob(
		gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), // or gocron.CronJob("0 2 * * *", false)
		gocron.NewTask(report),
		gocron.WithName("report"),
	)
	if err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
	<-done
	if err := scheduler.Shutdown(); err != nil {
		log.Fatal(err)
	}
	// Output: report <nil>
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

module redlatch.io/redlatch/gocronlock

go 1.21.0

require (
	github.com/go-co-op/gocron/v2 v2.16.0
	github.com/google/uuid v1.6.0
	go.uber.org/goleak v1.3.0
	redlatch.io/redlatch v0.0.0
)

require (
	github.com/jonboulle/clockwork v0.5.0 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
)

replace redlatch.io/redlatch => ../

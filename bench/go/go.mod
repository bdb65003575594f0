// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// The libraries of others are those of tests/interop/peers/go, and a rueidis that builds with Go
// 1.21: `go mod tidy` would take a newer one, for tests of redsync.
module redlatch/bench

go 1.21

require (
	github.com/bsm/redislock v0.9.4
	github.com/go-redsync/redsync/v4 v4.12.0
	github.com/redis/go-redis/v9 v9.4.0
	github.com/redis/rueidis v1.0.53
	redlatch.io/redlatch v0.0.0
)

require (
	github.com/cespare/xxhash/v2 v2.2.0 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	golang.org/x/sys v0.24.0 // indirect
)

replace redlatch.io/redlatch => ../../go

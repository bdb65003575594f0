// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch_test

import "testing"

// scripts/bench compares it with C and other libraries; this is for profiles.
func BenchmarkLockUnlock(b *testing.B) {
	client := startServer(b).client()
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		lease, err := client.Lock(background, "x")
		must(b, err)
		must(b, lease.Unlock(background))
	}
}

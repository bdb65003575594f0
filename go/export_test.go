// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import "time"

// NoticeSelfWaitsAfter sets the time until restore.
func NoticeSelfWaitsAfter(limit time.Duration) (restore func()) {
	before := selfWaitNotice.Swap(int64(limit))
	return func() { selfWaitNotice.Store(before) }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

/** Locks of redlatch for the tasks of ShedLock. */
@NullMarked
package io.redlatch.shedlock;

import org.jspecify.annotations.NullMarked;

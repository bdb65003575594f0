// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.util.OptionalLong;

/**
 * The numbers of a semaphore, as the server had them.
 *
 * @param used permits that are out
 * @param limit the limit that counts for the caller: the smaller one of its own limit and the cap
 * @param cap the limit that an operator has set for all callers; empty without one
 * @param waiting number of waiters
 */
public record SemaphoreStats(long used, long limit, OptionalLong cap, long waiting) {}

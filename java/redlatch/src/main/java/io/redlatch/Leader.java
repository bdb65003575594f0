// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.time.Instant;
import java.util.Optional;

/**
 * The leader of an election, as the server had it.
 *
 * @param id the id of the candidate that leads
 * @param term the number of the term, which rises from leader to leader: the fence of the lock
 * @param since when the term began, by the server's clock; empty if not known
 */
public record Leader(String id, long term, Optional<Instant> since) {}

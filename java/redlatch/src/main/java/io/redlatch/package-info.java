// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

/**
 * Locks that processes on many hosts share, over one Redis or Valkey server, or over most of
 * several. Begin with {@link io.redlatch.Redlatch}.
 *
 * <p>What asks a server waits for the answer as long as the options "command_timeout" and
 * "connect_timeout" of the client say. It fails with a {@link io.redlatch.RedlatchException}: with
 * E_UNAVAILABLE, with E_OUTCOME_UNKNOWN if no answer came, with E_DENIED and E_SERVER if that was a
 * refusal, and with E_CLOSED after close(); methods name what else they throw. Times count in whole
 * milliseconds, of which what is shorter than one is one. Any thread may use any object that does
 * not say otherwise.
 */
@NullMarked
package io.redlatch;

import org.jspecify.annotations.NullMarked;

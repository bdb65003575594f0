// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

/**
 * Locks that processes on many hosts share, over one Redis or Valkey server, or over most of
 * several. Begin with {@link io.redlatch.Redlatch}.
 *
 * <p>A method that asks a server waits for the answer, limited by the options "command_timeout" and
 * "connect_timeout" of the client. It fails with a {@link io.redlatch.RedlatchException} of one of
 * these statuses; methods name the others:
 *
 * <ul>
 *   <li>E_UNAVAILABLE: the server cannot be reached.
 *   <li>E_OUTCOME_UNKNOWN: no answer came.
 *   <li>E_DENIED, E_SERVER: the server refused the call.
 *   <li>E_CLOSED: the client was closed.
 * </ul>
 *
 * <p>Durations are rounded up to whole milliseconds. Any thread may use any object, unless its text
 * says otherwise.
 */
@NullMarked
package io.redlatch;

import org.jspecify.annotations.NullMarked;

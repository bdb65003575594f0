// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

/**
 * Locks that processes on many hosts share, over one Redis or Valkey server, or over most of
 * several. Begin with {@link io.redlatch.Redlatch}.
 */
@NullMarked
package io.redlatch;

import org.jspecify.annotations.NullMarked;

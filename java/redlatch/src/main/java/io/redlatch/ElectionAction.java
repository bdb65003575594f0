// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

/**
 * A callback of a {@link LeaderElector} or of {@link Election#observe}.
 *
 * @param <T> what it is called with: a {@link Term} or a {@link Leader}.
 */
@FunctionalInterface
public interface ElectionAction<T> {
  /** Called with the term or the leader. An exception is logged. */
  void accept(T value) throws Exception;
}

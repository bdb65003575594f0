// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

/** The work of a job that {@link Redlatch#once} runs. */
@FunctionalInterface
public interface OnceAction {
  /**
   * Runs the job. A return is a success, and an exception a failure.
   *
   * @param lease the lease of this run, for {@link Lease#fence} and {@link Lease#onLost}. The call
   *     that runs the job ends it: do not close or detach it.
   * @throws Exception the failure, which the call passes on.
   */
  void run(Lease lease) throws Exception;
}

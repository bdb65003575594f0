// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.internal.rlc.Rlc;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_client;
import io.redlatch.internal.rlc.SWIGTYPE_p_rl_list;
import java.lang.ref.Reference;
import java.util.Iterator;
import java.util.NoSuchElementException;
import org.jspecify.annotations.Nullable;

/** The locks of a server, one after the other. One thread at a time. */
final class LockIterator implements Iterator<LockInfo> {
  private final Redlatch client; // not collected while this can be used
  private final SWIGTYPE_p_rl_list list;
  private @Nullable LockInfo next;
  private boolean isAtEnd;

  LockIterator(Redlatch client, SWIGTYPE_p_rl_client handle, byte[] pattern) {
    this.client = client;
    SWIGTYPE_p_rl_list opened =
        Errors.check("list", "", err -> Rlc.list_open(handle, pattern, err));
    this.list = opened;
    CallSession.CLEANER.register(this, () -> Rlc.list_free(opened));
  }

  @Override
  public boolean hasNext() {
    if (next == null && !isAtEnd) {
      next = find();
      isAtEnd = next == null;
    }
    return next != null;
  }

  private @Nullable LockInfo find() {
    try (Request request = Request.of("list", "", Rlc.list_next_start(list))) {
      request.awaitUninterruptibly();
      return InfoReader.read(Rlc.list_info(list));
    } catch (RedlatchException failure) {
      if (failure.status() == Status.END) {
        return null;
      }
      throw failure;
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  @Override
  public LockInfo next() {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }
    LockInfo found = next;
    next = null;
    return found;
  }
}

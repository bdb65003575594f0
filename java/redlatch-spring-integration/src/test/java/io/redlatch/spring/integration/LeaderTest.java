// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch.spring.integration;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.Wait;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.springframework.integration.leader.Context;
import org.springframework.integration.leader.DefaultCandidate;
import org.springframework.integration.support.leader.LockRegistryLeaderInitiator;

/** Spring's election of a leader, by the lock of its role. */
class LeaderTest extends RegistriesTest {
  private static final class Candidate extends DefaultCandidate {
    final AtomicInteger granted = new AtomicInteger();
    final AtomicInteger revoked = new AtomicInteger();

    Candidate(String id) {
      super(id, "leader");
    }

    @Override
    public void onGranted(Context context) {
      granted.incrementAndGet();
    }

    @Override
    public void onRevoked(Context context) {
      revoked.incrementAndGet();
    }
  }

  private static LockRegistryLeaderInitiator start(
      RedlatchLockRegistry registry, Candidate candidate) {
    LockRegistryLeaderInitiator initiator = new LockRegistryLeaderInitiator(registry, candidate);
    initiator.setHeartBeatMillis(50);
    initiator.setBusyWaitMillis(10);
    initiator.start();
    return initiator;
  }

  @Test
  void nextCandidateLeadsWhenTheLeaderStops() {
    Candidate first = new Candidate("first");
    Candidate second = new Candidate("second");
    LockRegistryLeaderInitiator one = start(registry, first);
    Wait.until(() -> first.granted.get() == 1);
    LockRegistryLeaderInitiator two = start(other, second);
    Wait.until(() -> waiting("leader") == 1);
    assertTrue(one.getContext().isLeader());
    assertFalse(two.getContext().isLeader());
    one.stop();
    Wait.until(() -> two.getContext().isLeader());
    Wait.until(() -> first.revoked.get() == 1);
    two.stop();
    Wait.until(() -> second.revoked.get() == 1);
    assertFalse(server.has("leader"));
  }

  @Test
  void lossOfTheLockRevokesTheLeader() {
    Candidate first = new Candidate("first");
    LockRegistryLeaderInitiator one = start(registry, first);
    Wait.until(() -> first.granted.get() == 1);
    otherClient.forceRelease("leader");
    Wait.until(() -> first.revoked.get() == 1);
    // And it stands again.
    Wait.until(() -> first.granted.get() == 2);
    one.stop();
    Wait.until(() -> first.revoked.get() == 2);
  }
}

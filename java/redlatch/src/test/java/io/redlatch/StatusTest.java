// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.internal.rlc.Rlc;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

class StatusTest {
  @Test
  void statusesMatchNumbersAndNamesOfTheLibrary() {
    Set<Integer> numbers = new HashSet<>();
    for (Status status : Status.values()) {
      assertTrue(numbers.add(status.number()));
      assertFalse(status.text().isEmpty());
      assertEquals(status, Status.of(status.number()));
      String name = new String(Rlc.status_name(status.number()), StandardCharsets.US_ASCII);
      assertEquals("RL_" + status.name(), name);
    }
    assertEquals(Status.UNKNOWN, Status.of(-9999));
  }

  @Test
  void traitsSayWhetherARetryIsUseful() {
    assertTrue(Status.E_UNAVAILABLE.isRetryable());
    assertFalse(Status.E_UNAVAILABLE.maybeApplied());
    assertTrue(Status.E_OUTCOME_UNKNOWN.maybeApplied());
    assertFalse(Status.E_INVALID.isRetryable());
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

class EnvironmentTest extends ServerTest {
  @Test
  void environmentIsReadOnlyOnRequest() throws Exception {
    String url = "REDLATCH_URL=" + server.url();
    List<String> java = List.of("env", url, "REDLATCH_NAMESPACE=env:", Child.java());
    Child child = Child.run(java, FromEnvironment.class);
    assertEquals("env:x\nmine:\nE_INVALID\n", child.output);
  }
}

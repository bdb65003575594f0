// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class RedlockTest extends ServerTest {
  /** The servers have just been started, and the machine may be busy. */
  private static final ClientOptions UNGUARDED =
      ClientOptions.DEFAULT.with("restart_guard", "off").with("node_timeout", "5s");

  private final List<TestServer> servers = Stream.generate(this::another).limit(3).toList();
  private final List<String> urls = servers.stream().map(TestServer::url).toList();

  private TestServer another() {
    return closing(new TestServer());
  }

  private Redlock redlock(ClientOptions options) {
    return closing(Redlock.connect(urls, options, Duration.ofSeconds(Wait.PATIENCE_S)));
  }

  @Test
  void lockIsTakenOnMostServers() throws Exception {
    Redlock redlock = redlock(UNGUARDED);
    Lease lease = redlock.lock("x").with(LONG).acquire();
    Wait.until(() -> servers.stream().allMatch(server -> server.has("x")));
    assertTrue(lease.release());
    assertEquals(3, redlock.info().stream().filter(NodeInfo::votes).count());
    assertTrue(redlock.info().stream().allMatch(node -> node.clockDifference().isPresent()));
  }
}

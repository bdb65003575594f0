// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import java.time.Duration;

/** Takes a lock of the server that the environment names, and says under which key. */
final class FromEnvironment {
  private FromEnvironment() {}

  public static void main(String[] arguments) throws Exception {
    ClientOptions options = ClientOptions.DEFAULT.fromEnv();
    try (Redlatch client = Redlatch.connect("", options, Duration.ZERO);
        Lease lease = client.lock("x").acquire()) {
      System.out.println(client.option("namespace") + lease.name());
    }
    options = ClientOptions.DEFAULT.namespace("mine:").fromEnv();
    try (Redlatch client = Redlatch.connect("", options, Duration.ZERO)) {
      System.out.println(client.option("namespace"));
    }
    try {
      Redlatch.open("").close();
    } catch (RedlatchException failure) {
      System.out.println(failure.status());
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch.shedlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlatch.Redlatch;
import io.redlatch.Wait;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.spring.annotation.EnableSchedulerLock;
import net.javacrumbs.shedlock.spring.annotation.SchedulerLock;
import org.junit.jupiter.api.Test;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.Scheduled;

/** Two programs with Spring's scheduler, whose task says what lock it needs. */
class SpringTest extends NodesTest {
  /** What a task does, and what the test sees of it. */
  static final class Probe {
    final AtomicInteger tries = new AtomicInteger();
    final AtomicInteger runs = new AtomicInteger();
    final CountDownLatch mayEnd = new CountDownLatch(1);
  }

  static class Jobs {
    private final Probe probe;

    Jobs(Probe probe) {
      this.probe = probe;
    }

    @Scheduled(fixedDelay = 1)
    @SchedulerLock(name = "report", lockAtMostFor = "10m")
    public void report() throws InterruptedException {
      probe.runs.incrementAndGet();
      probe.mayEnd.await();
    }
  }

  @Configuration
  @EnableScheduling
  @EnableSchedulerLock(defaultLockAtMostFor = "10m")
  static class Program {
    @Bean
    LockProvider lockProvider(Redlatch client, Probe probe) {
      RedlatchLockProvider provider = new RedlatchLockProvider(client);
      return wanted -> {
        probe.tries.incrementAndGet();
        return provider.lock(wanted);
      };
    }

    @Bean
    Jobs jobs(Probe probe) {
      return new Jobs(probe);
    }
  }

  private static AnnotationConfigApplicationContext start(Redlatch client, Probe probe) {
    AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();
    context.registerBean(Redlatch.class, () -> client);
    context.registerBean(Probe.class, () -> probe);
    context.register(Program.class);
    context.refresh();
    return context;
  }

  @Test
  void oneProgramRunsTheTask() {
    Probe first = new Probe();
    Probe second = new Probe();
    second.mayEnd.countDown();
    AnnotationConfigApplicationContext program = start(client, first);
    Wait.until(() -> first.runs.get() == 1);
    try (AnnotationConfigApplicationContext otherProgram = start(otherClient, second)) {
      Wait.until(() -> second.tries.get() >= 3);
      assertEquals(0, second.runs.get());
      assertTrue(server.has("report"));
      first.mayEnd.countDown();
      program.close();
      Wait.until(() -> second.runs.get() >= 3);
      assertTrue(otherProgram.isRunning());
    }
  }
}

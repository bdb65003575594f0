// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import io.redlatch.LockLostException;
import io.redlatch.Redlatch;
import io.redlatch.RedlatchException;
import io.redlatch.Status;
import java.util.concurrent.CountDownLatch;
import org.springframework.boot.Banner;
import org.springframework.boot.SpringApplication;

/** Starts the beans of docs/recipes.md, which the test puts beside this file. */
final class Main {
  public static void main(String[] arguments) throws InterruptedException {
    SpringApplication application = new SpringApplication(Locks.class, Reports.class);
    application.setBannerMode(Banner.Mode.OFF);
    Redlatch client;
    try (var context = application.run()) {
      client = context.getBean(Redlatch.class);
      Reports reports = context.getBean(Reports.class);
      Worker worker = new Worker();
      reports.write(worker);
      // The test takes the lock away.
      worker.stopped = new CountDownLatch(1);
      try {
        reports.write(worker);
        throw new AssertionError("not lost");
      } catch (LockLostException expected) {
        System.out.println("lost");
      }
    }
    try {
      client.lock("report").tryAcquire();
      throw new AssertionError("the client is open after the context");
    } catch (RedlatchException expected) {
      if (expected.status() != Status.E_CLOSED) throw expected;
    }
  }
}

class Worker {
  volatile CountDownLatch stopped = new CountDownLatch(0);

  void write(long fence) {
    if (fence <= 0) throw new AssertionError(fence);
    if (stopped.getCount() > 0) System.out.println("waits to be stopped");
    try {
      stopped.await();
    } catch (InterruptedException cause) {
      throw new AssertionError(cause);
    }
  }

  void stop() {
    stopped.countDown();
  }
}

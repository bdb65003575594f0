// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import io.redlatch.Wait.Worker;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A thousand virtual threads use the server at a URL, of a process id, while all of them have one
 * carrier. What one of them does in the library may therefore not wait there.
 */
final class VirtualThreads {
  private static final int CROWD = 1000;

  private final Redlatch client;
  private final String url;
  private final String pid;

  private VirtualThreads(String url, String pid) {
    this.client = connect(url);
    this.url = url;
    this.pid = pid;
  }

  public static void main(String[] arguments) throws Exception {
    VirtualThreads test = new VirtualThreads(arguments[0], arguments[1]);
    test.haveTheirTurns();
    test.areInterrupted();
    test.doNotWaitInTheLibrary();
    test.client.close();
  }

  /** What has no answer is to wait for it, also when the machine is busy. */
  private static Redlatch connect(String url) {
    ClientOptions options = ClientOptions.DEFAULT.with("command_timeout", "1m");
    return Redlatch.connect(url, options, Duration.ZERO);
  }

  /** These tests are made for Java 17, which does not know the method. */
  private static <T> Task<T> start(Callable<T> work) {
    FutureTask<T> task = new FutureTask<>(work);
    try {
      Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
      return new Task<>((Thread) start.invoke(null, task), task);
    } catch (NoSuchMethodException | IllegalAccessException | InvocationTargetException failure) {
      throw new AssertionError(failure);
    }
  }

  private record Task<T>(Thread thread, FutureTask<T> task) {
    T end() throws Exception {
      return task.get(Wait.PATIENCE_S, TimeUnit.SECONDS);
    }

    boolean isWaiting() {
      return thread.getState() == Thread.State.WAITING;
    }
  }

  private static void assertOthersRun() throws Exception {
    if (start(() -> 7).end() != 7) {
      throw new AssertionError();
    }
  }

  private void haveTheirTurns() throws Exception {
    AtomicInteger turns = new AtomicInteger();
    List<Task<?>> crowd = new ArrayList<>();
    try (Lease held = client.lock("x").acquire()) {
      for (int i = 0; i < CROWD; i++) {
        // Of one lock and of several, of one connection.
        String name = i % 2 == 0 ? "x" : "x" + i % 10;
        Callable<Integer> work = () -> name.equals("x") ? turns.addAndGet(2) : 0;
        crowd.add(start(() -> client.lock(name).call(work)));
      }
      Wait.until(() -> crowd.stream().filter(Task::isWaiting).count() >= CROWD / 2);
      assertOthersRun();
      held.checkHeld();
    }
    for (Task<?> one : crowd) {
      one.end();
    }
    System.out.println("had their turns: " + turns);
  }

  private void areInterrupted() throws Exception {
    signal("STOP");
    AtomicInteger interrupted = new AtomicInteger();
    List<Task<Integer>> crowd = new ArrayList<>();
    for (int i = 0; i < CROWD; i++) {
      crowd.add(
          start(
              () -> {
                try {
                  client.lock("x").acquire();
                  return 0;
                } catch (InterruptedException expected) {
                  return interrupted.incrementAndGet();
                }
              }));
    }
    Wait.until(() -> crowd.stream().allMatch(Task::isWaiting));
    assertOthersRun();
    crowd.forEach(one -> one.thread.interrupt());
    for (Task<Integer> one : crowd) {
      one.end();
    }
    signal("CONT");
    System.out.println("interrupted: " + interrupted);
  }

  /** Calls that have no request, against a server that is silent. */
  private void doNotWaitInTheLibrary() throws Exception {
    Redlatch other = connect(url);
    Lease held = other.lock("held").acquire();
    Lease detached = other.lock("detached").acquire();
    String token = detached.detach();
    signal("STOP");
    List<Callable<?>> calls =
        List.of(
            () -> client.inspect("x"),
            () -> client.attach("detached", token),
            () -> client.list("").iterator().hasNext(),
            () -> held.release(),
            () -> client.election("leader").leader(),
            () -> client.election("leader").campaign(),
            () -> client.once("once", Duration.ofHours(1), lease -> {}),
            () -> client.singleFlight("flight", Duration.ofHours(1), () -> new byte[0]),
            () -> {
              client.onceForget("other");
              return 0;
            },
            () -> {
              client.forceRelease("held");
              return 0;
            });
    List<Task<?>> waiting = new ArrayList<>();
    for (Callable<?> call : calls) {
      waiting.add(start(call));
    }
    Task<?> closing =
        start(
            () -> {
              other.close();
              return 0;
            });
    long begin = System.nanoTime();
    while (System.nanoTime() - begin < 200_000_000) {
      assertOthersRun();
      for (Task<?> one : waiting) {
        if (one.task.isDone()) {
          throw new AssertionError("of a silent server");
        }
      }
    }
    signal("CONT");
    closing.end();
    for (Task<?> one : waiting) {
      Worker<Object> answered = new Worker<>(one::end);
      Wait.until(() -> !answered.isWaiting());
    }
  }

  private void signal(String name) throws Exception {
    new ProcessBuilder("kill", "-" + name, pid).start().waitFor();
  }
}

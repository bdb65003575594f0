// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import io.redlatch.Status;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Supplier;

/** What a holder has heard by its callback, from the first line that wants to know. */
final class Recalls {
  private final Consumer<Consumer<String>> registration;
  private final Supplier<OptionalLong> count;
  private final CompletableFuture<String> first = new CompletableFuture<>();
  private final AtomicInteger told = new AtomicInteger();
  private boolean isRegistered;

  /** `registration` is the onRecall of the holder, and `count` how often it was asked, if known. */
  Recalls(Consumer<Consumer<String>> registration, Supplier<OptionalLong> count) {
    this.registration = registration;
    this.count = count;
  }

  Answer await(Values values) throws InterruptedException {
    register();
    try {
      String reason =
          values.isEndless()
              ? first.get()
              : first.get(values.number("wait_ms"), TimeUnit.MILLISECONDS);
      Answer answer = Answer.ok().add("told", told.get()).add("reason", reason);
      count.get().ifPresent(number -> answer.add("count", number));
      return answer;
    } catch (TimeoutException notYet) {
      return new Answer(Status.TIMEOUT);
    } catch (ExecutionException failure) {
      throw new AssertionError(failure);
    }
  }

  private synchronized void register() {
    if (!isRegistered && !Defects.has("deaf")) {
      registration.accept(
          reason -> {
            told.incrementAndGet();
            first.complete(reason);
          });
    }
    isRegistered = true;
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import io.redlatch.FlightOptions;
import io.redlatch.LockOptions;
import io.redlatch.OnceOptions;
import io.redlatch.Redlatch;
import io.redlatch.RedlatchException;
import io.redlatch.SingleFlightException;
import io.redlatch.Status;
import java.util.concurrent.Callable;

/** Runs of once and flights, of a name with the options of its lock. */
final class Jobs {
  /** How a run or a computation fails. */
  private static final class Refused extends Exception {
    private static final long serialVersionUID = 1;

    Refused(String text) {
      super(text, null, false, false);
    }
  }

  private final Redlatch client;
  private final byte[] name;
  private final LockOptions options;

  Jobs(Redlatch client, byte[] name, LockOptions options) {
    this.client = client;
    this.name = name;
    this.options = options;
  }

  Answer run(String op, Values values) throws InterruptedException {
    return op.equals("once") ? once(values) : flight(values);
  }

  /** Takes as long, and ends as the line says. */
  private static void work(Values values) throws InterruptedException, Refused {
    Thread.sleep(values.number("for_ms"));
    if (values.text("run").equals("fail")) {
      throw new Refused(values.text("value"));
    }
  }

  /** Nothing else that the package passes on comes from the work. */
  private static Answer answerOf(Callable<Answer> call, Answer refused)
      throws InterruptedException {
    try {
      return call.call();
    } catch (Refused ofTheWork) {
      return refused;
    } catch (RedlatchException | InterruptedException known) {
      throw known;
    } catch (Exception unknown) {
      throw new AssertionError(unknown);
    }
  }

  private Answer once(Values values) throws InterruptedException {
    OnceOptions chosen = OnceOptions.DEFAULT.with(options).key(values.bytes("key"));
    if (values.has("tries")) {
      chosen = chosen.tries(values.small("tries"));
    }
    if (values.has("wait_ms") && !values.isEndless()) {
      chosen =
          values.isTry()
              ? chosen.skipIfBusy(true)
              : chosen.wait(values.duration("wait_ms"));
    }
    OnceOptions used = chosen;
    return answerOf(
        () ->
            client.once(name, values.duration("every_ms"), used, lease -> work(values))
                ? Answer.ok().add("ran", "ok")
                : new Answer(Status.SKIPPED),
        Answer.ok().add("ran", "failed"));
  }

  private Answer flight(Values values) throws InterruptedException {
    FlightOptions chosen = FlightOptions.DEFAULT.with(options);
    if (values.has("wait_ms") && !values.isEndless()) {
      chosen = chosen.wait(values.duration("wait_ms"));
    }
    FlightOptions used = chosen;
    return answerOf(() -> fly(values, used), failed(values.text("value")));
  }

  private Answer fly(Values values, FlightOptions used) throws Exception {
    int[] computed = {0};
    Callable<byte[]> compute =
        () -> {
          computed[0] = 1;
          work(values);
          return values.bytes("value");
        };
    try {
      byte[] value = client.singleFlight(name, values.duration("ttl_ms"), used, compute);
      return Answer.ok().add("value", value).add("computed", computed[0]);
    } catch (SingleFlightException ofAnother) {
      return failed(ofAnother.text()).add("type", ofAnother.type());
    }
  }

  private static Answer failed(String text) {
    return Answer.ok().add("failed", 1).add("text", text);
  }
}

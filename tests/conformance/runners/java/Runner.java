// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import static java.nio.charset.StandardCharsets.US_ASCII;

import io.redlatch.LockOptions;
import io.redlatch.RedlatchException;
import io.redlatch.Status;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The Java runner of the conformance suite: reads a line, does it, prints a line; SPEC.md says what
 * the lines mean. Locks are taken and given back by the surface that users have: blocks that end
 * with close(), futures, exceptions. REDLATCH_RUNNER_DEFECT plants a defect (Defects.java).
 */
final class Runner {
  /** A line that is done in a thread of its own. */
  private static final class Job extends Thread {
    private final Runnable work;
    private String answer;

    Job(Runner runner, String target, String op, Values values) {
      work = () -> answer = runner.answer(target, op, values);
    }

    @Override
    public void run() {
      work.run();
    }
  }

  private final Client client = new Client();

  /** Jobs look here while the next line may make another. */
  private final Map<String, Lock> locks = new ConcurrentHashMap<>();

  private final Map<String, Job> jobs = new HashMap<>();

  private Answer ofClient(String op, Values values) {
    switch (op) {
      case "open":
        return client.open(values);
      case "lock":
        LockOptions options = Options.ofLock(values);
        Answer answer = Options.check(values, options);
        if (options != null) {
          locks.put(values.text("id"), new Lock(client, values, options));
        }
        return answer;
      case "connect":
        return client.connect(values);
      case "check":
        return client.check(values);
      case "shutdown":
        return client.close();
      case "inspect":
        return client.inspect(values);
      case "force_release":
        return client.forceRelease(values);
      case "force_release_any":
        return client.forceReleaseAny(values);
      case "recall":
      case "resign":
        return client.recall(op, values);
      case "once_forget":
        return client.onceForget(values);
      case "leader":
      case "participants":
        return client.elections(op, values);
      case "list":
        return client.list(values);
      case "statuses":
        return client.statuses();
      default:
        throw new IllegalArgumentException(op);
    }
  }

  /** Does it, and says how it went. */
  private String answer(String target, String op, Values values) {
    try {
      if (values.isNoWait()) {
        return new Answer(Status.E_INVALID).toString();
      }
      boolean isClient = target.equals("-");
      if (!isClient && !locks.containsKey(target)) {
        return "UNKNOWN";
      }
      Answer done = isClient ? ofClient(op, values) : locks.get(target).run(op, values);
      return done.toString();
    } catch (RedlatchException failure) {
      return Answer.of(failure).toString();
    } catch (IllegalArgumentException unknown) {
      return "UNKNOWN";
    } catch (InterruptedException nobodyDoes) {
      throw new AssertionError(nobodyDoes);
    }
  }

  /** Does a line, or starts it in a thread of its own, or waits for what was started. */
  private String run(String line) throws InterruptedException {
    List<String> words = new ArrayList<>(List.of(line.split(" ")));
    String job = words.get(words.size() - 1);
    boolean isJob = job.startsWith("&");
    Values values = new Values();
    for (String word : words.subList(2, words.size() - (isJob ? 1 : 0))) {
      int equals = word.indexOf('=');
      values.put(word.substring(0, equals), word.substring(equals + 1));
    }
    String target = words.get(0);
    String op = words.get(1);
    if (!isJob) {
      return answer(target, op, values);
    }
    if (op.equals("wait")) {
      Job done = jobs.remove(job);
      done.join();
      return done.answer;
    }
    Job started = new Job(this, target, op, values);
    jobs.put(job, started);
    started.start();
    return "STARTED";
  }

  /** Ends the waits of the jobs, and of what was started. */
  private void end() throws InterruptedException {
    client.close();
    for (Job job : jobs.values()) {
      job.join();
    }
    locks.values().forEach(Lock::join);
  }

  public static void main(String[] arguments) throws IOException, InterruptedException {
    Runner runner = new Runner();
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, US_ASCII));
    for (String line; (line = lines.readLine()) != null; ) {
      System.out.println(runner.run(line));
      System.out.flush();
    }
    runner.end();
  }
}

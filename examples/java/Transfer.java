// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import io.redlatch.Lease;
import io.redlatch.LockName;
import io.redlatch.Redlatch;
import io.redlatch.RedlatchException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A transfer from one account to another, each a file with a number. Both are locked in one step,
 * so that nothing else changes one of them meanwhile. The order of the names does not matter: a
 * transfer back at the same time cannot deadlock with this one.
 *
 * <pre>java -cp redlatch.jar Transfer.java redis://localhost:6379 accounts alice bob 10</pre>
 */
final class Transfer {
  private static long read(Path account) throws IOException {
    return Long.parseLong(Files.readString(account).strip());
  }

  private static void write(Path account, long balance) throws IOException {
    Files.writeString(account, balance + "\n");
  }

  private static void move(Path folder, String from, String to, long amount) throws IOException {
    long source = read(folder.resolve(from));
    long target = read(folder.resolve(to));
    if (source < amount) {
      System.out.println("refused: " + from + " has only " + source);
      return;
    }
    source -= amount;
    target += amount;
    write(folder.resolve(from), source);
    write(folder.resolve(to), target);
    System.out.println(
        "moved " + amount + ": " + from + " has " + source + ", " + to + " has " + target);
  }

  private static void lockAndMove(
      Redlatch client, Path folder, String from, String to, long amount)
      throws IOException, InterruptedException {
    LockName source = LockName.write("account/" + from);
    LockName target = LockName.write("account/" + to);
    // Throws LockLostException at its end if a lock was lost: the numbers may be wrong.
    try (Lease lease = client.lockAll(source, target).acquire()) {
      move(folder, from, to, amount);
    }
  }

  public static void main(String[] arguments) throws InterruptedException {
    if (arguments.length != 5) {
      System.err.println("usage: transfer URL FOLDER FROM TO AMOUNT");
      System.exit(64);
    }
    Path folder = Path.of(arguments[1]);
    try (Redlatch client = Redlatch.open(arguments[0])) {
      long amount = Long.parseLong(arguments[4]);
      lockAndMove(client, folder, arguments[2], arguments[3], amount);
    } catch (RedlatchException | IOException | NumberFormatException failure) {
      System.err.println("transfer: " + failure.getMessage());
      System.exit(1);
    }
  }
}

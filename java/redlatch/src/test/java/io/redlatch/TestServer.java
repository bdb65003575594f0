// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** A redis-server of one test, on a socket in a folder of its own. */
public final class TestServer implements AutoCloseable {
  /** It ends with whoever has started it, in whatever way that ends. */
  private static final String LAUNCHER = "../../tests/support/server";

  private final Path folder;
  private final List<Process> shells = new ArrayList<>();
  private String pid;

  public TestServer() {
    try {
      // The name of a socket must be short.
      folder = Files.createTempDirectory("rl");
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
    start();
  }

  private void start() {
    try {
      Process shell =
          new ProcessBuilder(LAUNCHER, folder.toString())
              .redirectError(ProcessBuilder.Redirect.INHERIT)
              .start();
      shells.add(shell);
      pid = shell.inputReader().readLine();
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
    if (pid == null) {
      throw new AssertionError("the server does not start");
    }
  }

  /** Another process takes its place, without its data. */
  public void restart() {
    kill();
    start();
  }

  private Path socket() {
    return folder.resolve("s");
  }

  public String url() {
    return "unix://" + socket();
  }

  /** The first line of the answer to a command. */
  public String ask(String... words) {
    return ask(bytesOf(words));
  }

  private static List<byte[]> bytesOf(String... words) {
    return Stream.of(words).map(word -> word.getBytes(UTF_8)).toList();
  }

  public String ask(List<byte[]> words) {
    ByteArrayOutputStream request = new ByteArrayOutputStream();
    request.writeBytes(("*" + words.size() + "\r\n").getBytes(UTF_8));
    for (byte[] word : words) {
      request.writeBytes(("$" + word.length + "\r\n").getBytes(UTF_8));
      request.writeBytes(word);
      request.writeBytes("\r\n".getBytes(UTF_8));
    }
    try (SocketChannel channel = SocketChannel.open(UnixDomainSocketAddress.of(socket()))) {
      channel.write(ByteBuffer.wrap(request.toByteArray()));
      String answer = new BufferedReader(Channels.newReader(channel, UTF_8)).readLine();
      return answer == null ? "" : answer;
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
  }

  public boolean has(String key) {
    return ask("EXISTS", key).equals(":1");
  }

  /** The next renewal of a lease, which is not soon if there is none. */
  public void awaitRenewal(String key) {
    long[] left = {Long.MAX_VALUE};
    Wait.until(
        () -> {
          long before = left[0];
          left[0] = Long.parseLong(ask("PTTL", key).substring(1));
          return left[0] > before;
        });
  }

  /** Whether somebody waits there for the lock, by the key of its line. */
  public boolean hasQueue(String name) {
    return has("{" + name + "}:rl1:q");
  }

  /** It answers nothing until resume(). */
  public void pause() {
    signal("STOP");
  }

  public void resume() {
    signal("CONT");
  }

  String pid() {
    return pid;
  }

  public void kill() {
    signal("KILL");
  }

  private void signal(String name) {
    try {
      int failed = new ProcessBuilder("kill", "-" + name, pid).start().waitFor();
      if (failed != 0) {
        throw new AssertionError("kill -" + name + " " + pid + " failed");
      }
    } catch (IOException | InterruptedException failure) {
      throw new AssertionError(failure);
    }
  }

  @Override
  public void close() {
    try {
      for (Process shell : shells) {
        shell.getOutputStream().close();
        shell.waitFor();
      }
    } catch (IOException | InterruptedException failure) {
      throw new AssertionError(failure);
    }
  }
}

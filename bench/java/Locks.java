// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

import java.util.List;

/** The locks of one library: all wait, have a lease of 30 s, and are renewed while held. */
interface Locks {
  /** It is taken and given back by one thread. */
  interface Lock {
    void lock() throws Exception;

    void unlock() throws Exception;
  }

  /** What kinds of locks it has. */
  List<String> kinds();

  Lock make(String kind, String name);

  /**
   * Opens a library, by the class that knows it: not all are there whenever this is compiled.
   *
   * @param port of the server.
   */
  static Locks open(String library, int port) throws ReflectiveOperationException {
    return (Locks) Class.forName(library).getDeclaredConstructor(int.class).newInstance(port);
  }
}

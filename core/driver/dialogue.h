// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Dialogue: questions and answers on fresh connections, such as an attempt to connect to a server.
// It says what to dial, what to send, how many replies are to come and until when. Its host has the
// sockets and the clock: a thread of core/runtime, or the simulator. No socket, no clock here.
//
// The host does, until is_over():
//
//   is_dialling()   closes wire(), dials target() there, at most until limit()
//                   --> on_dialled(), or on_failed() with the reason, or on_late()
//   otherwise       sends what it was given to wire(), and receives there
//                   --> on_reply() for each reply, on_closed() at the end, on_late() after limit()
//                   Replies that came before what is to be sent now are dropped.
//
// After each event it closes the connections that are not used() any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/reply.h"
#include "base/settings.h"
#include "base/status.h"

namespace redlatch::driver {

class Dialogue {
 public:
  // The numbers of its connections.
  enum Wire : uint8_t { kCommands, kMessages, kSentinel, kWireCount };
  // Takes one command. The text, which may be secret, is borrowed for the call.
  using Send = std::function<void(std::span<const std::string_view>)>;

  Dialogue() = default;
  Dialogue(const Dialogue &) = delete;
  Dialogue &operator=(const Dialogue &) = delete;
  virtual ~Dialogue() = default;

  virtual bool is_over() const = 0;
  // When it is over.
  virtual const Outcome &outcome() const = 0;
  // The connection that is to be dialled, or on which replies are awaited.
  virtual Wire wire() const { return kCommands; }
  virtual bool is_dialling() const = 0;
  // The server that is dialled or asked.
  virtual const Settings &target() const = 0;
  // How many replies are to come on wire() before anything else is sent; 0 while it is dialled.
  virtual size_t awaited_count() const = 0;
  // Until when the dial has to succeed, or the replies have to come.
  virtual Nanos limit() const = 0;
  // @return false if a connection, should it be open, is of no use, also when it is over.
  virtual bool uses(Wire wire) const = 0;
  // The sentence of the model that does not hold, or null.
  virtual const char *check() const = 0;

  // ---- events. The bytes that `send` takes go to wire(), as it is after the call
  virtual void on_dialled(const Send &send, Nanos now) = 0;
  // wire() could not be dialled, or its replies do not come.
  virtual void on_failed(const Outcome &why, Nanos now) = 0;
  // The next reply; pushes are not replies. One that answers nothing is ignored.
  void on_reply(Wire from, const Reply &reply, const Send &send, Nanos now) {
    if (awaits(from)) take(reply, send, now);
  }
  // limit() has passed, or the host waits no longer.
  void on_late(Nanos now);
  // The server has closed a connection that is used. `why`: of TLS, or ok.
  void on_closed(const Outcome &why, Nanos now);

  // @return whether the host, which has `count` pushes of the connection, keeps one more for its
  // later owner. A server that sends without end fills no memory.
  static bool keeps_push(Wire from, size_t count) { return from == kCommands && count < 64; }

 protected:
  // It answers what was sent last.
  virtual void take(const Reply &reply, const Send &send, Nanos now) = 0;

 private:
  bool awaits(Wire from) const {
    return !is_over() && !is_dialling() && from == wire() && awaited_count() > 0;
  }
};

}  // namespace redlatch::driver

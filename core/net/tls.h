// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Tls: bytes of the application in, bytes for the socket out, and back; no socket inside. So it is
// a Connection that sends, with its limits and without SIGPIPE. One thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/settings.h"
#include "base/status.h"

struct ssl_st;

namespace redlatch::net {

struct OpenSsl;

class Tls {
 public:
  // As a client of the server that `settings` name. Files are read anew each time, because
  // certificates are renewed while a service runs.
  static Outcome make(const Settings &settings, std::unique_ptr<Tls> &tls);
  ~Tls();
  Tls(const Tls &) = delete;
  Tls &operator=(const Tls &) = delete;

  // Go on with the handshake. @return whether it is over; after a failure, why() says so.
  enum class Step : uint8_t { kDone, kNeedsMore, kFailed };
  Step shake_hands();

  // Take in what the server has sent. Throws std::bad_alloc.
  void put(std::span<const char> sealed);
  // Open some of that. @return how much; 0: more is needed; nothing: it has ended, see why().
  std::optional<size_t> read(std::span<char> plain);
  // Seal all of `plain`, or nothing. @return kNeedsMore: the same has to be tried again after the
  // next read(), because a message of TLS itself has come in part.
  Step write(std::string_view plain);
  // Append what is to be sent to `sealed`. Throws std::bad_alloc.
  void take(std::string &sealed);

  // Why it has failed. Ok: the server said goodbye.
  const Outcome &why() const { return why_; }

 private:
  Tls(const OpenSsl &library, std::string address, std::string name);
  void note_failure(int result);
  void note_verdict();

  const OpenSsl &library_;
  ssl_st *session_ = nullptr;
  const std::string address_;
  const std::string name_;  // that the certificate must have
  Outcome why_;
};

}  // namespace redlatch::net

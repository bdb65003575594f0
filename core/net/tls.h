// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Tls: a TLS session over memory: plain bytes in, encrypted bytes out, and back. It has no socket,
// so that Connection sends, with its limits and without SIGPIPE. One thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/dial_failure.h"

struct ssl_st;

namespace redlatch::net {

struct OpenSsl;

class Tls {
 public:
  // Make a session with `peer`. Files are read each time, because certificates
  // may be renewed while a service runs.
  static DialFailure make(const Peer &peer, std::unique_ptr<Tls> &tls);
  ~Tls();
  Tls(const Tls &) = delete;
  Tls &operator=(const Tls &) = delete;

  // Continue the handshake. @return kFailed: see why().
  enum class Step : uint8_t { kDone, kNeedsMore, kFailed };
  Step shake_hands();

  // Take in bytes that the server has sent. Throws std::bad_alloc.
  void put(std::span<const char> sealed);
  // Decrypt some of them. @return how many; 0: more are needed; nullopt: the session has ended, see
  // why().
  std::optional<size_t> read(std::span<char> plain);
  // Encrypt all of `plain`, or nothing. @return kNeedsMore: repeat the call after the next read(),
  // because a part of a TLS message is still missing.
  Step write(std::string_view plain);
  // Append the encrypted output to `sealed`. Throws std::bad_alloc.
  void take(std::string &sealed);

  // Why the session has failed. Ok: the server closed it in good order.
  const DialFailure &why() const { return why_; }

 private:
  explicit Tls(const OpenSsl &library) : library_(library) {}
  void note_failure(int result);
  void note_verdict();

  const OpenSsl &library_;
  ssl_st *session_ = nullptr;
  DialFailure why_;
};

}  // namespace redlatch::net

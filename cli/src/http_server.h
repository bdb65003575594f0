// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// A small HTTP server for probes: GET and HEAD, short answers, one request for each connection. It
// has one thread, which serves at most 16 connections at a time. A further one takes the place of
// the oldest that has sent no whole request: idle connections keep no probe waiting.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "handles.h"

namespace redlatch::cli {

// An address to listen on.
struct HttpAddress {
  sockaddr_in6 socket{};  // Also an IPv4 one.
  bool is_loopback = false;
};

// "127.0.0.1:4040", "[::1]:4040" or "localhost:4040"; port 0 = the system chooses one. nullopt for
// other texts: no name is resolved.
[[nodiscard]] std::optional<HttpAddress> parse_http_address(std::string_view text);

struct HttpAnswer {
  int status;
  std::string type;
  std::string body;
};

// A text for people, with a line end.
[[nodiscard]] HttpAnswer plain_answer(int status, std::string_view text);

class HttpServer {
 public:
  // The answer for a path, without the query. Called by the server's thread.
  using Handler = std::function<HttpAnswer(std::string_view path)>;

  // Listens from here on. `is_public`: any Host header is accepted; otherwise it must be a loopback
  // name or address, because a page in a browser could have an own name resolved to this server.
  // Throws a Failure if it cannot listen.
  HttpServer(const HttpAddress& address, bool is_public, Handler handler);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  // Ends the thread and all connections.
  ~HttpServer();

  // "127.0.0.1:4040", with the port that is used.
  [[nodiscard]] std::string address() const;

 private:
  struct Connection {
    FileDescriptor socket;
    std::int64_t end_us;
    std::string in;
    std::string out;  // The rest of the answer.
    enum class State { kReading, kWriting, kDraining } state = State::kReading;
  };

  void serve();
  void serve_once();
  [[nodiscard]] int timeout_ms() const;
  [[nodiscard]] bool can_make_room() const;
  static bool is_without_request(const Connection& connection) {
    return connection.state == Connection::State::kReading;
  }
  void accept_new();
  // Returns false if the connection is over.
  bool serve(Connection& connection, bool is_ready);
  bool read(Connection& connection) const;
  static bool write(Connection& connection);
  static bool drain(Connection& connection);

  const bool is_public_;
  const Handler handler_;
  FileDescriptor listener_;
  FileDescriptor stop_;
  std::int64_t accept_at_us_ = 0;  // Later, after the system had no descriptor left.
  std::vector<Connection> connections_;
  std::thread thread_;
};

}  // namespace redlatch::cli

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "http_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <new>
#include <utility>

#include "duration.h"
#include "exit_code.h"
#include "signals.h"

namespace redlatch::cli {
namespace {

constexpr std::size_t kMostConnections = 16;
constexpr std::size_t kMostHeadBytes = 8192;
constexpr std::int64_t kRequestUs = 5'000'000;
// For a client to read the answer: closing with unread bytes of its request would discard it.
constexpr std::int64_t kDrainUs = 1'000'000;
constexpr std::int64_t kAcceptPauseUs = 100'000;
constexpr auto kNone = std::string_view::npos;

bool is_same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

// A literal IPv4 or IPv6 address.
std::optional<HttpAddress> parse_ip(std::string_view text) {
  const std::string host(text);
  HttpAddress address;
  auto& v4 = reinterpret_cast<sockaddr_in&>(address.socket);
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    address.is_loopback = ntohl(v4.sin_addr.s_addr) >> 24U == 127;
    return address;
  }
  address = {};
  if (inet_pton(AF_INET6, host.c_str(), &address.socket.sin6_addr) != 1) return std::nullopt;
  address.socket.sin6_family = AF_INET6;
  address.is_loopback = IN6_IS_ADDR_LOOPBACK(&address.socket.sin6_addr);
  return address;
}

// "localhost", "127.0.0.1" or "[::1]".
std::optional<HttpAddress> parse_host(std::string_view text) {
  if (is_same(text, "localhost")) return parse_ip("127.0.0.1");
  const bool has_brackets = text.size() > 2 && text.front() == '[' && text.back() == ']';
  if (has_brackets != (text.find(':') != kNone)) return std::nullopt;
  return parse_ip(has_brackets ? text.substr(1, text.size() - 2) : text);
}

std::size_t find_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  return colon == kNone || text.find(']', colon) != kNone ? kNone : colon;
}

bool is_loopback_host(std::string_view text) {
  const auto address = parse_host(text.substr(0, find_port(text)));
  return address && address->is_loopback;
}

bool is_token(std::string_view text) {
  const auto is_part = [](char c) {
    const bool is_letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
    return is_letter || (c >= '0' && c <= '9') || std::strchr("!#$%&'*+-.^_`|~", c) != nullptr;
  };
  return !text.empty() && text.find('\0') == kNone &&
         std::all_of(text.begin(), text.end(), is_part);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

std::string_view take_line(std::string_view& text) {
  std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// The size of the head with its empty line; kNone if that has not come.
std::size_t head_size(std::string_view data) {
  for (std::size_t end = data.find('\n'); end != kNone; end = data.find('\n', end + 1)) {
    const std::string_view rest = data.substr(end + 1);
    if (rest.starts_with('\n')) return end + 2;
    if (rest.starts_with("\r\n")) return end + 3;
  }
  return kNone;
}

// Returns false if a header is malformed, or if there are two of Host.
bool find_host(std::string_view headers, std::optional<std::string_view>& host) {
  while (!headers.empty()) {
    const std::string_view line = take_line(headers);
    if (line.empty()) return true;
    const std::size_t colon = line.find(':');
    const std::string_view name = line.substr(0, colon);
    if (colon == kNone || !is_token(name)) return false;
    if (!is_same(name, "Host")) continue;
    if (host) return false;
    host = trimmed(line.substr(colon + 1));
  }
  return true;
}

HttpAnswer answer_to(std::string_view head, bool is_public, const HttpServer::Handler& handler) {
  const std::string_view line = take_line(head);
  const std::size_t begin = line.find(' ');
  const std::size_t end = line.rfind(' ');
  const std::string_view method = line.substr(0, begin);
  if (begin == kNone || begin == end || !is_token(method)) {
    return plain_answer(400, "the request line is malformed");
  }
  const std::string_view target = line.substr(begin + 1, end - begin - 1);
  const std::string_view version = line.substr(end + 1);
  if (!target.starts_with('/') || target.find_first_of(" \t") != kNone ||
      (version != "HTTP/1.1" && version != "HTTP/1.0")) {
    return plain_answer(400, "the request line must be GET /PATH HTTP/1.1");
  }
  std::optional<std::string_view> host;
  if (!find_host(head, host)) return plain_answer(400, "a header is malformed");
  if (!host && version == "HTTP/1.1") return plain_answer(400, "the Host header is missing");
  if (host && !is_public && !is_loopback_host(*host)) {
    return plain_answer(400, "the Host header must be a loopback name or address");
  }
  if (method != "GET" && method != "HEAD") {
    return plain_answer(405, "the method must be GET or HEAD");
  }
  return handler(target.substr(0, target.find('?')));
}

const char* phrase_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Bad Request";
  }
}

std::string text_of(const HttpAnswer& answer, bool has_body) {
  std::string text = "HTTP/1.1 " + std::to_string(answer.status) + " " + phrase_of(answer.status) +
                     "\r\nContent-Type: " + answer.type +
                     "\r\nContent-Length: " + std::to_string(answer.body.size()) +
                     "\r\nCache-Control: no-store\r\nConnection: close\r\n";
  if (answer.status == 405) text += "Allow: GET, HEAD\r\n";
  return text + "\r\n" + (has_body ? answer.body : "");
}

bool is_transient(int error) { return error == EAGAIN || error == EINTR; }

std::string address_text(const sockaddr_in6& socket) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool is_v4 = socket.sin6_family == AF_INET;
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(socket);
  const void* const ip = is_v4 ? static_cast<const void*>(&v4.sin_addr) : &socket.sin6_addr;
  inet_ntop(socket.sin6_family, ip, text.data(), text.size());
  const std::string port = ":" + std::to_string(ntohs(socket.sin6_port));
  return (is_v4 ? text.data() : "[" + std::string(text.data()) + "]") + port;
}

FileDescriptor listen_on(const sockaddr_in6& address) {
  const int on = 1;
  FileDescriptor fd(socket(address.sin6_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const socklen_t size = address.sin6_family == AF_INET ? sizeof(sockaddr_in) : sizeof address;
  const bool listens = fd.is_open() &&
                       setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                       bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                       listen(fd.get(), SOMAXCONN) == 0;
  if (listens) return fd;
  // An address of another host cannot be right on a second try.
  const int exit_code = errno == EADDRNOTAVAIL ? kExitUsage : kExitSystem;
  throw Failure{exit_code, "cannot listen on " + address_text(address) + ": " + strerror(errno)};
}

}  // namespace

std::optional<HttpAddress> parse_http_address(std::string_view text) {
  const std::size_t colon = find_port(text);
  if (colon == kNone) return std::nullopt;
  std::optional<HttpAddress> address = parse_host(text.substr(0, colon));
  const std::string_view digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (!address || parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) {
    return std::nullopt;
  }
  address->socket.sin6_port = htons(port);  // It is at the place of sin_port.
  return address;
}

HttpAnswer plain_answer(int status, std::string_view text) {
  return {status, "text/plain; charset=utf-8", std::string(text) + "\n"};
}

HttpServer::HttpServer(const HttpAddress& address, bool is_public, Handler handler)
    : is_public_(is_public),
      handler_(std::move(handler)),
      listener_(listen_on(address.socket)),
      stop_(eventfd(0, EFD_CLOEXEC)) {
  if (!stop_.is_open()) {
    throw Failure{kExitSystem, std::string("cannot create an eventfd: ") + strerror(errno)};
  }
  const AllSignalsBlocked blocked;
  thread_ = std::thread([this] { serve(); });
}

HttpServer::~HttpServer() {
  const std::uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof one);
  thread_.join();
}

std::string HttpServer::address() const {
  sockaddr_in6 socket{};
  socklen_t size = sizeof socket;
  getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&socket), &size);
  return address_text(socket);
}

void HttpServer::serve() {
  pollfd stop = {stop_.get(), POLLIN, 0};
  while (::poll(&stop, 1, 0) == 0) {
    try {
      serve_once();
    } catch (const std::bad_alloc&) {
      connections_.clear();
    }
  }
}

void HttpServer::serve_once() {
  const bool accepts = can_make_room() && now_us() >= accept_at_us_;
  std::vector<pollfd> fds = {{stop_.get(), POLLIN, 0}, {accepts ? listener_.get() : -1, POLLIN, 0}};
  for (const Connection& connection : connections_) {
    const bool writes = connection.state == Connection::State::kWriting;
    fds.push_back({connection.socket.get(), static_cast<short>(writes ? POLLOUT : POLLIN), 0});
  }
  if (::poll(fds.data(), fds.size(), timeout_ms()) < 0) return;
  auto fd = fds.begin() + 2;
  std::erase_if(connections_,
                [&](Connection& connection) { return !serve(connection, (fd++)->revents != 0); });
  if (fds[1].revents != 0) accept_new();
}

int HttpServer::timeout_ms() const {
  std::int64_t end_us = accept_at_us_ > now_us() ? accept_at_us_ : INT64_MAX;
  for (const Connection& connection : connections_) end_us = std::min(end_us, connection.end_us);
  if (end_us == INT64_MAX) return -1;
  return static_cast<int>(std::max<std::int64_t>(end_us - now_us(), 0) / 1000 + 1);
}

bool HttpServer::can_make_room() const {
  return connections_.size() < kMostConnections ||
         std::any_of(connections_.begin(), connections_.end(), is_without_request);
}

void HttpServer::accept_new() {
  FileDescriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.is_open()) {
    if (connections_.size() >= kMostConnections) {
      connections_.erase(
          std::find_if(connections_.begin(), connections_.end(), is_without_request));
    }
    Connection& connection = connections_.emplace_back();
    connection.socket = std::move(socket);
    connection.end_us = now_us() + kRequestUs;
  } else if (!is_transient(errno) && errno != ECONNABORTED) {
    accept_at_us_ = now_us() + kAcceptPauseUs;  // Such as no descriptor left.
  }
}

bool HttpServer::serve(Connection& connection, bool is_ready) {
  using State = Connection::State;
  if (now_us() >= connection.end_us) {
    if (connection.state == State::kReading && !connection.in.empty()) {
      connection.out = text_of(plain_answer(408, "the request took more than 5 s"), true);
      (void)write(connection);
    }
    return false;
  }
  if (!is_ready) return true;
  if (connection.state == State::kReading && !read(connection)) return false;
  if (connection.state == State::kWriting && !write(connection)) return false;
  return connection.state != State::kDraining || drain(connection);
}

bool HttpServer::read(Connection& connection) const {
  std::array<char, 4096> buffer{};
  const ssize_t size = recv(connection.socket.get(), buffer.data(), buffer.size(), 0);
  if (size < 0) return is_transient(errno);
  std::string& in = connection.in;
  in.append(buffer.data(), static_cast<std::size_t>(size));
  const std::size_t head = head_size(in);
  HttpAnswer answer;
  if (std::min(head, in.size()) > kMostHeadBytes) {
    answer = plain_answer(431, "the request must have at most 8192 bytes");
  } else if (head != kNone) {
    answer = answer_to(std::string_view(in).substr(0, head), is_public_, handler_);
  } else if (size == 0) {
    if (in.empty()) return false;
    answer = plain_answer(400, "the request is not complete");
  } else {
    return true;
  }
  connection.out = text_of(answer, !in.starts_with("HEAD "));
  connection.state = Connection::State::kWriting;
  return true;
}

bool HttpServer::write(Connection& connection) {
  std::string& out = connection.out;
  const ssize_t size = send(connection.socket.get(), out.data(), out.size(), MSG_NOSIGNAL);
  if (size < 0) return is_transient(errno);
  out.erase(0, static_cast<std::size_t>(size));
  if (!out.empty()) return true;
  shutdown(connection.socket.get(), SHUT_WR);
  connection.state = Connection::State::kDraining;
  connection.end_us = std::min(connection.end_us, now_us() + kDrainUs);
  return true;
}

// Until the client closes, which has the answer then.
bool HttpServer::drain(Connection& connection) {
  std::array<char, 4096> buffer{};
  const ssize_t size = recv(connection.socket.get(), buffer.data(), buffer.size(), 0);
  return size > 0 || (size < 0 && is_transient(errno));
}

}  // namespace redlatch::cli

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "fidelity_server.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>

namespace redlatch::sim {

namespace {

constexpr timeval kPatience = {30, 0};

redisContext *connect(const std::string &socket) {
  redisContext *connection = redisConnectUnixWithTimeout(socket.c_str(), kPatience);
  if (!connection || connection->err) throw std::runtime_error("cannot connect to " + socket);
  redisSetTimeout(connection, kPatience);
  return connection;
}

void append(redisContext *connection, std::span<const std::string> words) {
  std::vector<const char *> texts;
  std::vector<size_t> sizes;
  for (const std::string &word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  redisAppendCommandArgv(connection, static_cast<int>(words.size()), texts.data(), sizes.data());
}

}  // namespace

RealServer::RealServer(const std::string &socket, const std::string &clock_file)
    : connection_(connect(socket)), subscriber_(connect(socket)) {
  const int fd = open(clock_file.c_str(), O_RDWR | O_CLOEXEC);
  void *page = mmap(nullptr, sizeof *clock_us_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) throw std::runtime_error("cannot map " + clock_file);
  close(fd);
  clock_us_ = static_cast<std::atomic<int64_t> *>(page);
}

RealServer::~RealServer() {
  munmap(clock_us_, sizeof *clock_us_);
  redisFree(subscriber_);
  redisFree(connection_);
}

void RealServer::send(std::span<const std::string> words) { append(connection_, words); }

Value RealServer::receive() { return read(connection_); }

void RealServer::subscribe(std::span<const std::string> channels, bool is_sharded) {
  for (const std::string &channel : channels) {
    const std::string words[] = {is_sharded ? "SSUBSCRIBE" : "SUBSCRIBE", channel};
    append(subscriber_, words);
    read(subscriber_);
  }
}

std::vector<Message> RealServer::messages() {
  const std::string words[] = {"PING"};
  append(subscriber_, words);
  std::vector<Message> messages;
  for (;;) {
    const Value value = read(subscriber_);
    if (value.items.size() != 3) return messages;
    messages.push_back(
        {value.items[1].text, value.items[2].text, value.items[0].text == "smessage"});
  }
}

Value RealServer::read(redisContext *connection) {
  void *reply = nullptr;
  if (redisGetReply(connection, &reply) != REDIS_OK || !reply) {
    throw std::runtime_error(std::string("no reply: ") + connection->errstr);
  }
  const std::unique_ptr<redisReply, decltype(&freeReplyObject)> owner(
      static_cast<redisReply *>(reply), freeReplyObject);
  return value_of(*owner);
}

Value RealServer::value_of(const redisReply &reply) {
  switch (reply.type) {
    case REDIS_REPLY_INTEGER:
      return Value::of(int64_t{reply.integer});
    case REDIS_REPLY_STRING:
      return Value::of(std::string(reply.str, reply.len));
    case REDIS_REPLY_STATUS:
      return Value::status({reply.str, reply.len});
    case REDIS_REPLY_ERROR:
      return Value::error({reply.str, reply.len});
    case REDIS_REPLY_ARRAY: {
      Value list = Value::list({});
      for (size_t i = 0; i < reply.elements; i++) {
        list.items.push_back(value_of(*reply.element[i]));
      }
      return list;
    }
    default:
      return Value::nil();
  }
}

}  // namespace redlatch::sim

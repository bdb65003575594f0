// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "resp/reply_reader.h"

#include <hiredis/read.h>

#include <cassert>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/limits.h"

namespace redlatch::resp {

namespace {

// hiredis calls the functions below. Each builds one value, in one block of memory with its text or
// its elements; hiredis takes nullptr as out of memory.

Reply *make(const redisReadTask *task, Reply::Kind kind, size_t extra) {
  auto &budget = *static_cast<ReplyReader::Budget *>(task->privdata);
  budget.bytes += extra;
  if (budget.bytes > kMaxReplyBytes) return nullptr;
  void *memory = std::malloc(sizeof(Reply) + extra);
  if (memory == nullptr) return nullptr;
  auto *reply = new (memory) Reply();
  reply->kind = kind;
  if (task->parent != nullptr) {
    static_cast<Reply *>(task->parent->obj)->elements[task->idx] = reply;
  }
  return reply;
}

void *make_text(const redisReadTask *task, char *text, size_t size) {
  const bool is_error = task->type == REDIS_REPLY_ERROR;
  Reply *reply = make(task, is_error ? Reply::Kind::kError : Reply::Kind::kText, size + 1);
  if (reply == nullptr) return nullptr;
  auto *copy = reinterpret_cast<char *>(reply + 1);
  std::memcpy(copy, text, size);
  reply->data = copy;
  reply->size = size;
  return reply;
}

void *make_list(const redisReadTask *task, size_t count) {
  auto &budget = *static_cast<ReplyReader::Budget *>(task->privdata);
  assert(budget.elements <= kMaxReplyElements);
  int depth = 1;
  for (const redisReadTask *up = task->parent; up != nullptr; up = up->parent) depth++;
  if (depth > kMaxReplyDepth || count > kMaxReplyElements - budget.elements) return nullptr;
  budget.elements += count;
  const bool is_push = task->type == REDIS_REPLY_PUSH;
  const auto kind = is_push ? Reply::Kind::kPush : Reply::Kind::kArray;
  Reply *reply = make(task, kind, count * sizeof(Reply *));
  if (reply == nullptr) return nullptr;
  reply->elements = reinterpret_cast<Reply **>(reply + 1);
  for (size_t i = 0; i < count; i++) reply->elements[i] = nullptr;
  reply->size = count;
  return reply;
}

void *make_integer(const redisReadTask *task, long long value) {
  Reply *reply = make(task, Reply::Kind::kInteger, 0);
  if (reply != nullptr) reply->integer = value;
  return reply;
}

void *make_double(const redisReadTask *task, double, char *text, size_t size) {
  return make_text(task, text, size);
}

void *make_bool(const redisReadTask *task, int value) { return make_integer(task, value); }

void *make_nil(const redisReadTask *task) { return make(task, Reply::Kind::kNil, 0); }

void free_reply(void *object) { ReplyDeleter()(static_cast<Reply *>(object)); }

redisReplyObjectFunctions kFunctions = {make_text, make_list, make_integer, make_double,
                                        make_nil,  make_bool, free_reply};

}  // namespace

void ReplyDeleter::operator()(Reply *reply) const {
  if (reply == nullptr) return;
  for (size_t i = 0; i < reply->count(); i++) (*this)(reply->elements[i]);
  std::free(reply);
}

ReplyReader::ReplyReader() : reader_(redisReaderCreateWithFunctions(&kFunctions)) {
  if (reader_ == nullptr) throw std::bad_alloc();
  reader_->privdata = &budget_;
  reader_->maxelements = static_cast<long long>(kMaxReplyElements);
}

ReplyReader::~ReplyReader() { redisReaderFree(reader_); }

bool ReplyReader::feed(std::span<const char> bytes, std::vector<ReplyPtr> &replies) {
  if (redisReaderFeed(reader_, bytes.data(), bytes.size()) != REDIS_OK) return false;
  unfinished_bytes_ += bytes.size();
  for (;;) {
    void *reply = nullptr;
    if (redisReaderGetReply(reader_, &reply) != REDIS_OK) return false;
    if (reply == nullptr) return unfinished_bytes_ <= kMaxReplyBytes;
    replies.push_back(ReplyPtr(static_cast<Reply *>(reply)));
    assert(reader_->pos <= reader_->len);
    unfinished_bytes_ = reader_->len - reader_->pos;
    budget_ = {};
  }
}

}  // namespace redlatch::resp

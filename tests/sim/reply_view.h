// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// ReplyView: a Value of the store as a Reply for the product.
#pragma once

#include <vector>

#include "base/reply.h"
#include "value.h"

namespace redlatch::sim {

// Points into the value.
class ReplyView {
 public:
  explicit ReplyView(const Value &value) {
    size_t count = 0;
    size_t list_count = 0;
    measure(value, count, list_count);
    nodes_.reserve(count);
    lists_.reserve(list_count);
    root_ = build(value);
  }
  const Reply &get() const { return *root_; }

 private:
  static void measure(const Value &value, size_t &count, size_t &list_count) {
    count++;
    list_count += value.items.size();
    for (const Value &item : value.items) measure(item, count, list_count);
  }
  Reply *build(const Value &value) {
    nodes_.emplace_back();
    Reply *reply = &nodes_.back();
    switch (value.kind) {
      case Value::Kind::kNil:
        break;
      case Value::Kind::kInteger:
        reply->kind = Reply::Kind::kInteger;
        reply->integer = value.integer;
        break;
      case Value::Kind::kText:
      case Value::Kind::kStatus:
      case Value::Kind::kError:
        reply->kind = value.is_error() ? Reply::Kind::kError : Reply::Kind::kText;
        reply->data = value.text.data();
        reply->size = value.text.size();
        break;
      case Value::Kind::kArray: {
        const size_t first = lists_.size();
        lists_.resize(first + value.items.size());
        for (size_t i = 0; i < value.items.size(); i++) lists_[first + i] = build(value.items[i]);
        reply->kind = Reply::Kind::kArray;
        reply->elements = lists_.data() + first;
        reply->size = value.items.size();
      }
    }
    return reply;
  }

  std::vector<Reply> nodes_;
  std::vector<Reply *> lists_;
  Reply *root_ = nullptr;
};

}  // namespace redlatch::sim

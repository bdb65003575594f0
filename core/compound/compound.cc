// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "compound/compound.h"

#include <new>
#include <utility>

namespace redlatch::compound {

Compound::Compound(Table &table, std::shared_ptr<lock::Request> request,
                   std::shared_ptr<lock::Lease> lease)
    : Timed(Timed::Kind::kRecord),
      table_(table),
      request_(std::move(request)),
      lease_(std::move(lease)) {}

void Compound::end(Status status, std::string_view message) noexcept {
  const auto keep = shared_from_this();
  forget();
  answer(status, message);
}

void Compound::answer(Status status, std::string_view message) noexcept {
  const auto request = std::move(request_);
  table_.finish(*request, status, message);
}

void Compound::end_lease(lock::Lease::State state, lock::Loss loss) noexcept {
  lease_->reason = std::move(loss.text);
  lease_->loss = loss.reason;
  lease_->state.store(state, std::memory_order_release);
  table_.lease_ended(*lease_);
}

void Table::add(const std::shared_ptr<Compound> &compound) {
  timers_.admit();
  try {
    if (compound->request_) subjects_.emplace(compound->request_.get(), compound.get());
    if (compound->lease_) subjects_.emplace(compound->lease_.get(), compound.get());
    all_.emplace(last_id_ + 1, compound);
  } catch (...) {
    subjects_.erase(compound->request_.get());
    subjects_.erase(compound->lease_.get());
    timers_.dismiss();
    throw;
  }
  compound->id_ = ++last_id_;
}

void Table::forget(Compound &compound) noexcept {
  if (std::exchange(compound.is_forgotten_, true)) return;
  timers_.remove(compound);
  timers_.dismiss();
  subjects_.erase(compound.request_.get());
  subjects_.erase(compound.lease_.get());
  all_.erase(compound.id_);
}

void Table::mark(Compound &compound) noexcept {
  if (std::exchange(compound.is_marked_, true)) return;
  (first_marked_ ? last_marked_->next_marked_ : first_marked_) = compound.shared_from_this();
  last_marked_ = &compound;
}

void Table::review_marked(Nanos now) noexcept {
  while (first_marked_) {
    const auto compound = std::move(first_marked_);
    first_marked_ = std::move(compound->next_marked_);
    compound->is_marked_ = false;
    if (compound->is_forgotten_) continue;
    try {
      compound->review(now);
    } catch (const std::bad_alloc &) {
      compound->on_no_memory(now);
    }
  }
}

void Table::finish(lock::Request &request, Status status, std::string_view message) noexcept {
  subjects_.erase(&request);
  request.complete(status, message);
  output_.finished(request);
}

Compound *Table::find(const void *subject) const {
  const auto found = subjects_.find(subject);
  return found == subjects_.end() ? nullptr : found->second;
}

void Table::on_timer(Nanos now) noexcept {
  while (timers_.next_due() <= now) {
    auto &compound = static_cast<Compound &>(timers_.top());
    timers_.remove(compound);
    mark(compound);
    review_marked(now);
  }
}

}  // namespace redlatch::compound

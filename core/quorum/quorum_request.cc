// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "quorum/quorum_request.h"

#include <new>
#include <utility>

namespace redlatch::quorum {

QuorumRequest::QuorumRequest(Nodes &nodes, Requests &requests,
                             std::shared_ptr<lock::Request> request,
                             std::shared_ptr<lock::Lease> lease)
    : Timed(Timed::Kind::kRecord),
      nodes_(nodes),
      requests_(requests),
      request_(std::move(request)),
      lease_(std::move(lease)) {}

void QuorumRequest::end(Status status, std::string_view message) noexcept {
  const auto keep = shared_from_this();
  forget();
  answer(status, message);
}

void QuorumRequest::answer(Status status, std::string_view message) noexcept {
  const auto request = std::move(request_);
  requests_.finish(*request, status, message);
}

void Requests::add(const std::shared_ptr<QuorumRequest> &request) {
  timers_.admit();
  try {
    subjects_.emplace(request->request_.get(), request.get());
    if (request->lease_) subjects_.emplace(request->lease_.get(), request.get());
    all_.emplace(last_id_ + 1, request);
  } catch (...) {
    subjects_.erase(request->request_.get());
    subjects_.erase(request->lease_.get());
    timers_.dismiss();
    throw;
  }
  request->id_ = ++last_id_;
}

void Requests::forget(QuorumRequest &request) noexcept {
  if (std::exchange(request.is_forgotten_, true)) return;
  timers_.remove(request);
  timers_.dismiss();
  subjects_.erase(request.request_.get());
  subjects_.erase(request.lease_.get());
  all_.erase(request.id_);
}

void Requests::mark(QuorumRequest &request) noexcept {
  if (std::exchange(request.is_marked_, true)) return;
  (first_marked_ ? last_marked_->next_marked_ : first_marked_) = request.shared_from_this();
  last_marked_ = &request;
}

void Requests::review_marked(Nanos now) noexcept {
  while (first_marked_) {
    const auto request = std::move(first_marked_);
    first_marked_ = std::move(request->next_marked_);
    request->is_marked_ = false;
    if (request->is_forgotten_) continue;
    try {
      request->review(now);
    } catch (const std::bad_alloc &) {
      request->on_no_memory(now);
    }
  }
}

void Requests::finish(lock::Request &request, Status status, std::string_view message) noexcept {
  subjects_.erase(&request);
  request.complete(status, message);
  output_.finished(request);
}

QuorumRequest *Requests::find(const void *subject) const {
  const auto found = subjects_.find(subject);
  return found == subjects_.end() ? nullptr : found->second;
}

void Requests::on_timer(Nanos now) noexcept {
  while (timers_.next_due() <= now) {
    auto &request = static_cast<QuorumRequest &>(timers_.top());
    timers_.remove(request);
    mark(request);
    review_marked(now);
  }
}

}  // namespace redlatch::quorum

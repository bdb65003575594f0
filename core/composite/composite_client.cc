// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "composite/composite_client.h"

#include <algorithm>
#include <cassert>

#include "base/limits.h"
#include "composite/part_commands.h"
#include "composite/words.h"

namespace redlatch::composite {

using compound::PartLease;
using compound::PartRequest;
using lock::Lease;
using lock::Request;

namespace {

bool awaits_leader(const Request &request) {
  return request.task && request.task->is_election() && request.wait_ms != 0;
}

}  // namespace

// ---- calls -------------------------------------------------------------------------------------

void CompositeClient::start(const std::shared_ptr<Request> &request, Nanos now) {
  const bool is_about_lease = request->lease && request->lease->is_composite();
  const bool is_compound =
      request->several.names || request->is_flight() || awaits_leader(*request);
  if (is_shut_ && (is_about_lease || is_compound)) {
    return refuse(*request, {Status::kClosed, lock::words::same(lock::words::kShutDown)});
  }
  if (request->several.names) {
    if (request->wait_ms > kMaxWaitMs) request->wait_ms = -1;
    const auto composite = std::make_shared<Composite>(inner_, table_, request, now);
    table_.add(composite);
    composite->start(now);
  } else if (request->is_flight()) {
    if (request->wait_ms > kMaxWaitMs) request->wait_ms = -1;
    const auto flight = std::make_shared<flight::Flight>(inner_, table_, rooms_, request, now);
    table_.add(flight);
    flight->start(now);
  } else if (awaits_leader(*request)) {
    if (request->wait_ms > kMaxWaitMs) request->wait_ms = -1;
    const auto observer =
        std::make_shared<election::Observer>(inner_, table_, observer_count_, request, now);
    table_.add(observer);
    observer->start(now);
  } else if (is_about_lease) {
    start_command(request, now);
  } else {
    inner_->start(request, now);
  }
  table_.review_marked(now);
}

void CompositeClient::refuse(Request &request, const Outcome &why) {
  table_.finish(request, why.status, why.message);
}

Composite *CompositeClient::holder_of(const Lease &lease) const {
  auto *composite = static_cast<Composite *>(table_.find(&lease));
  return composite != nullptr && composite->is_held() ? composite : nullptr;
}

void CompositeClient::start_command(const std::shared_ptr<Request> &request, Nanos now) {
  const bool is_release = request->op == Request::Op::kRelease;
  const bool is_of_run = request->arguments != nullptr;
  if (is_of_run || (!is_release && request->op != Request::Op::kExtend)) {
    const std::string why = words::not_with_several(request->lease->name, request->op);
    return refuse(*request, {Status::kInvalid, why});
  }
  if (Composite *found = holder_of(*request->lease)) found->maintain(now);  // may end the lease
  Composite *composite = holder_of(*request->lease);
  if (composite == nullptr) return refuse(*request, request->lease->why_not_held());
  const auto commands = std::make_shared<PartCommands>(inner_, table_, request, *composite);
  table_.add(commands);
  if (is_release) {
    composite->end_lease(Lease::kReleased);
    composite->leave();
  }
  commands->start(now);
}

Status CompositeClient::cancel(Request &request, Nanos now) {
  compound::Compound *found = table_.find(&request);
  if (found == nullptr) {
    const Status status = inner_->cancel(request, now);
    table_.review_marked(now);
    return status;
  }
  found->fail(Status::kCancelled, lock::words::kCancelled, now);
  table_.review_marked(now);
  return Status::kCancelled;
}

void CompositeClient::release_async(Lease &lease, Nanos now) {
  if (!lease.is_composite()) {
    inner_->release_async(lease, now);
  } else if (Composite *composite = holder_of(lease)) {
    composite->end_lease(Lease::kReleased);
    composite->give_back(now);
  }
  table_.review_marked(now);
}

void CompositeClient::shut_down(Nanos now) {
  is_shut_ = true;
  inner_->shut_down(now);  // first: no part is handed to another caller
  table_.for_each([&](compound::Compound &each) { each.shut_down(now); });
  table_.review_marked(now);
}

void CompositeClient::give_up() {
  inner_->give_up();
  table_.review_marked(0);
  table_.for_each([](compound::Compound &each) {
    each.fail(Status::kOutcomeUnknown, lock::words::kUnansweredAtShutdown, 0);
  });
}

const Request *CompositeClient::waits_for_itself(const Request &request) const {
  if (request.is_flight()) return nullptr;
  if (!request.several.names) return inner_->waits_for_itself(request);
  const auto *composite = static_cast<const Composite *>(table_.find(&request));
  return composite == nullptr ? nullptr : composite->waits_for_itself();
}

// ---- time --------------------------------------------------------------------------------------

void CompositeClient::on_timer(Nanos now) {
  inner_->on_timer(now);
  table_.review_marked(now);
  table_.on_timer(now);
}

Nanos CompositeClient::next_due() const { return std::min(inner_->next_due(), table_.next_due()); }

// ---- reports of the inner client ---------------------------------------------------------------

void CompositeClient::finished(Request &request) {
  if (!request.several.is_part) return output_.finished(request);
  if (auto *owner = static_cast<PartRequest &>(request).owner) owner->mark();
}

void CompositeClient::lease_ended(Lease &lease) {
  if (!lease.is_of_composite) return output_.lease_ended(lease);
  if (auto *owner = static_cast<PartLease &>(lease).owner) owner->mark();
}

void CompositeClient::lease_moved(Lease &lease) {
  if (!lease.is_of_composite) return output_.lease_moved(lease);
  if (auto *owner = static_cast<PartLease &>(lease).owner) owner->mark();
}

// A recall of one of the names is a recall of the lease of all.
void CompositeClient::lease_recalled(Lease &lease) {
  if (!lease.is_of_composite) return output_.lease_recalled(lease);
  if (auto *owner = static_cast<PartLease &>(lease).owner) owner->on_recalled(lease);
}

void CompositeClient::queued(Request &request) {
  assert(request.several.is_part);
  if (auto *owner = static_cast<PartRequest &>(request).owner) owner->mark();
}

}  // namespace redlatch::composite

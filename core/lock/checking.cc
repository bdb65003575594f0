// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClient: requests for the health of the server.
#include "lock/lock_client.h"

namespace redlatch::lock {

void LockClient::check_later(size_t, Nanos due) {
  if (!is_shut_) health_.check_at(due);
}

void LockClient::on_health(const protocol::HealthFacts &facts, const protocol::LockTrial *trial) {
  output_.health_found(node_, facts, trial);
}

void LockClient::on_health_answered(const std::shared_ptr<void> &asker) {
  auto &request = *static_cast<Request *>(asker.get());
  if (!request.is_finished()) finish_immediate(request, Status::kOk);
}

// A request that may wait asks again on the next connection.
void LockClient::on_health_lost(const std::shared_ptr<void> &asker) {
  auto &request = *static_cast<Request *>(asker.get());
  if (request.wait_ms != 0 || request.is_finished()) return;
  finish_immediate(request, session_.lost().status, session_.lost().message);
}

}  // namespace redlatch::lock

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "lock/term.h"

#include "base/message.h"

namespace redlatch::lock {

protocol::HolderInfo info_of(const TokenRecord &record, const Settings &settings) {
  return {settings.holder, record.held()->label(), record.held()->since_ms(),
          record.identity.candidate, record.held()->fence()};
}

bool may_leave(Request &request, Results &results) {
  const TokenRecord &record = *request.lease->record;
  if (record.identity.candidate.empty()) return true;
  results.finish(request, Status::kInvalid,
                 message_of({"the term of ", Quoted{record.identity.candidate}, " in election ",
                             Quoted{record.lock->name},
                             " must be resigned, and not be detached or downgraded"}));
  return false;
}

}  // namespace redlatch::lock

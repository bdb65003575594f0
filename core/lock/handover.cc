// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Engine: a lease goes from one client to another, by DETACH and ATTACH.
//
// From the moment DETACH is sent another client may hold the lock with the same token. So this
// client stops relying on the lease, and never again sends RELEASE, EXTEND or DOWNGRADE for it,
// unless the server has refused the only copy that was sent.
#include "base/text.h"
#include "lock/engine.h"
#include "timing/lease_clock.h"

namespace redlatch::lock {

void Engine::start_detach(const std::shared_ptr<Request> &request, Nanos now) {
  if (is_held(*request, now)) start_plain(request, now);
}

void Engine::on_detach_sent(Hold &hold) {
  if (hold.phase == Phase::kDetaching) return;
  set_phase(hold, Phase::kDetaching);
  hold.lease->state.store(Lease::kDetached, std::memory_order_release);
  timers_.remove(hold);
}

void Engine::on_detach_reply(Request &request, int64_t result, Nanos now) {
  if (request.lease->hold == nullptr) {
    const auto why = why_not_held(*request.lease);
    return finish_plain(request, why.status, why.message);
  }
  const auto hold = request.lease->hold->shared_from_this();
  // An earlier copy without an answer may have taken effect, and its mark may be used up.
  const bool is_attached = result == 2 && request.is_unanswered;
  if (result == 1 || is_attached) {
    end_lease(*hold, Lease::kDetached, {});
    leave_detached(*hold, now);
    return finish_plain(request, Status::kOk);
  }
  if (request.is_unanswered) {
    return finish_plain(request, Status::kOutcomeUnknown,
                        "the connection broke while the lease was detached: it may have been "
                        "detached, attached elsewhere and ended since");
  }
  end_lease(*hold, Lease::kLost, kTakenAway);
  leave_detached(*hold, now);
  const auto why = why_not_held(*request.lease);
  finish_plain(request, why.status, why.message);
}

// The only copy was refused: the lease is held as before.
void Engine::on_detach_refused(Request &request, Nanos now) {
  if (request.op != Request::Op::kDetach || request.is_unanswered) return;
  Hold *hold = request.lease->hold;
  if (hold == nullptr || hold->phase != Phase::kDetaching) return;
  set_phase(*hold, Phase::kHeld);
  hold->lease->state.store(Lease::kHeld, std::memory_order_release);
  schedule(*hold, now);
  resume_upgrade(*hold, now);  // what was put off
}

// @return whether the server may have marked the lease of `request`, which is then left to its ttl.
bool Engine::end_detach(Request &request) noexcept {
  if (!request.is_sent || request.lease->hold == nullptr) return false;
  if (request.lease->hold->phase != Phase::kDetaching) return false;
  const auto hold = request.lease->hold->shared_from_this();
  end_lease(*hold, Lease::kDetached, {});
  forget(*hold);
  return true;
}

// The lease has ended for this client. A poll that crossed the grant may have queued its token
// again.
void Engine::leave_detached(Hold &hold, Nanos now) {
  leave_vacant(*hold.lock, now);
  if (!hold.acquisition.may_be_queued()) return forget(hold);
  clean_up(hold, now);
}

void Engine::on_attached(Request &request, const InFlight &in_flight,
                         const protocol::CountAnswer &answer, Nanos now) {
  if (answer.result < 1) {
    const char *why = answer.result == 0 ? " is not held by that token"
                                         : " is held by that token, which was not detached: only "
                                           "its holder can detach it";
    return finish_plain(request, Status::kNotHeld, "lock " + quoted(request.name) + why);
  }
  const Nanos lease = request.options.lease;
  const Nanos deadline = timing::deadline_of(in_flight.sent_at, lease);
  if (deadline <= now) {
    return finish_plain(request, Status::kOutcomeUnknown,
                        "the answer came after the lease had ended");
  }
  // Everything that needs memory comes first: if it fails, the request ends by its time limit.
  request.lease->name = request.name;
  request.lease->token = request.inquiry->token;
  const auto lock = name_of(request.name, protocol::Format::kString);
  Hold &hold = new_hold(lock, request);
  hold.token = std::move(request.inquiry->token);
  hold.is_sharing = answer.result == 2;
  if (hold.is_sharing) hold.mode = protocol::Mode::kRead;
  hold.acquisition.served();
  set_phase(hold, Phase::kHeld);
  const auto keep = *request.place;
  plain_.erase(request.place);
  const Grant grant{.deadline = deadline,
                    .renewal_at = timing::renewal_of(in_flight.sent_at, lease),
                    .attach_count = answer.handovers};
  give_lease(hold, request, &grant, now);
}

}  // namespace redlatch::lock

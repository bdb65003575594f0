// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Completion queues and watches.
#include <cerrno>

#include "base/text.h"
#include "handles.h"

using namespace redlatch;
using namespace redlatch::capi;

namespace {

using EventKind = runtime::QueueEvent::Kind;

// 0 is not a valid tag: rl_queue_next() returns it for an empty queue.
bool is_good(const rl_queue *queue, int64_t tag) { return queue == nullptr || tag != 0; }

std::shared_ptr<runtime::Queue> target_of(const rl_queue *queue) {
  return queue == nullptr ? nullptr : queue->queue;
}

// Its status has a meaning by the kind: rl_event.
rl_event event_of(const runtime::QueueEvent &event) {
  void *handle = event.watched ? event.watched->handle.load() : nullptr;
  return {event.tag, static_cast<int32_t>(event.kind), event.status, handle};
}

void end_driving(rl_queue &queue) {
  if (const auto source = queue.queue->source()) source->end_reading_by(*queue.queue);
}

bool is_forked(const rl_queue *queue) { return queue != nullptr && queue->queue->is_forked(); }

}  // namespace

extern "C" {

rl_queue *rl_queue_new(rl_error *err) {
  return guarded<rl_queue *>(err, nullptr, [&]() -> rl_queue * {
    auto handle = std::make_unique<rl_queue>();
    handle->queue = std::make_shared<runtime::Queue>();
    if (!handle->queue->is_open()) {
      answer(err, Status::kNoMemory,
             "cannot create event descriptor: " + redlatch::reason_of(errno));
      return nullptr;
    }
    answer(err, Status::kOk);
    return handle.release();
  });
}

int32_t rl_queue_fd(const rl_queue *queue) {
  return queue == nullptr || is_forked(queue) ? -1 : queue->queue->fd();
}

int64_t rl_queue_next(rl_queue *queue, int64_t wait_ms) {
  const NoCancel no_cancel;
  if (queue == nullptr || wait_ms < -1 || is_forked(queue)) return 0;
  if (wait_ms == 0) return queue->queue->next().tag;
  return queue->queue->wait(runtime::limit_of(wait_ms)).tag;
}

int32_t rl_queue_next_event(rl_queue *queue, int64_t wait_ms, rl_event *event) {
  const NoCancel no_cancel;
  if (event == nullptr) return RL_E_INVALID;
  *event = {};
  if (queue == nullptr || wait_ms < -1) return RL_E_INVALID;
  if (is_forked(queue)) return RL_E_FORKED;
  const auto taken =
      wait_ms == 0 ? queue->queue->next() : queue->queue->wait(runtime::limit_of(wait_ms));
  if (taken.tag != 0) *event = event_of(taken);
  return event->kind;
}

rl_status rl_queue_post(rl_queue *queue, int64_t tag) {
  if (queue == nullptr || tag == 0) return RL_E_INVALID;
  if (is_forked(queue)) return RL_E_FORKED;
  return guarded_status(nullptr, [&](rl_error *e) {
    queue->queue->post({.tag = tag});
    answer(e, Status::kOk);
  });
}

rl_status rl_queue_drive(rl_queue *queue, rl_client *client) {
  const NoCancel no_cancel;
  if (queue == nullptr) return RL_E_INVALID;
  if (is_forked(queue) || (client != nullptr && client->runtime->is_forked())) return RL_E_FORKED;
  if (client == nullptr) {
    end_driving(*queue);
    return RL_OK;
  }
  if (!client->runtime->may_be_driven()) return RL_E_UNSUPPORTED;
  return client->runtime->begin_reading_by(queue->queue) ? RL_OK : RL_E_INVALID;
}

void rl_queue_free(rl_queue *queue) {
  const NoCancel no_cancel;
  if (queue == nullptr || is_forked(queue)) return;
  end_driving(*queue);
  queue->queue->close();
  delete queue;
}

rl_status rl_request_watch(rl_request *request, rl_queue *queue, int64_t tag) {
  if (request == nullptr || !is_good(queue, tag)) return RL_E_INVALID;
  if (is_forked(queue) || (request->runtime && request->runtime->is_forked())) return RL_E_FORKED;
  return guarded_status(nullptr, [&](rl_error *e) {
    // The thread that takes the event may free the handle before this returns.
    const auto runtime = request->runtime;
    const auto watched = request->request;
    runtime::QueueEvent event;
    if (queue != nullptr) {
      event = request->watched.event(EventKind::kRequest, tag, request);
      request->is_watched.store(true);
    }
    if (runtime) {
      runtime->watch(*watched, target_of(queue), std::move(event));
    } else if (queue != nullptr) {
      event.status = static_cast<rl_status>(watched->status.load());
      queue->queue->post(std::move(event));
    }
    answer(e, Status::kOk);
  });
}

rl_status rl_lease_watch(rl_lease *lease, rl_queue *queue, int64_t tag) {
  if (lease == nullptr || !is_good(queue, tag)) return RL_E_INVALID;
  if (is_forked(queue) || lease->runtime->is_forked()) return RL_E_FORKED;
  return guarded_status(nullptr, [&](rl_error *e) {
    // As in rl_request_watch().
    const auto runtime = lease->runtime;
    const auto watched = lease->lease;
    runtime::QueueEvent event;
    if (queue != nullptr) event = lease->watched.event(EventKind::kLease, tag, lease);
    runtime->watch(*watched, target_of(queue), std::move(event));
    answer(e, Status::kOk);
  });
}

rl_status rl_lease_watch_recall(rl_lease *lease, rl_queue *queue, int64_t tag) {
  if (lease == nullptr || !is_good(queue, tag)) return RL_E_INVALID;
  if (is_forked(queue) || lease->runtime->is_forked()) return RL_E_FORKED;
  if (lease->runtime->is_quorum()) return RL_E_UNSUPPORTED;
  return guarded_status(nullptr, [&](rl_error *e) {
    // As in rl_request_watch().
    const auto runtime = lease->runtime;
    const auto watched = lease->lease;
    runtime::QueueEvent event;
    if (queue != nullptr) event = lease->watched.event(EventKind::kRecall, tag, lease);
    runtime->watch_recall(*watched, target_of(queue), std::move(event));
    answer(e, Status::kOk);
  });
}

rl_status rl_client_log_watch(rl_client *client, int32_t level, rl_queue *queue, int64_t tag) {
  if (client == nullptr || level < RL_LOG_NONE || level > RL_LOG_INFO) return RL_E_INVALID;
  if (level != RL_LOG_NONE && !is_good(queue, tag)) return RL_E_INVALID;
  if (is_forked(queue) || client->runtime->is_forked()) return RL_E_FORKED;
  return guarded_status(nullptr, [&](rl_error *e) {
    runtime::ClientLog &log = client->runtime->log();
    if (queue == nullptr) {
      log.end_watches();
    } else {
      runtime::QueueEvent event;
      if (level != RL_LOG_NONE) event = client->watched.event(EventKind::kLog, tag, client);
      log.watch(static_cast<runtime::LogLevel>(level), queue->queue, event);
    }
    answer(e, Status::kOk);
  });
}

rl_status rl_client_credentials_watch(rl_client *client, rl_queue *queue, int64_t tag) {
  if (client == nullptr || !is_good(queue, tag)) return RL_E_INVALID;
  if (is_forked(queue) || client->runtime->is_forked()) return RL_E_FORKED;
  return guarded_status(nullptr, [&](rl_error *e) {
    runtime::QueueEvent event;
    if (queue != nullptr) event = client->watched.event(EventKind::kCredentials, tag, client);
    answer(e, client->runtime->watch_credentials(target_of(queue), event));
  });
}

}  // extern "C"

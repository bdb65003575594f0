// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Call: one command under way. CallKind: a kind of command, and what is done with its answer or
// without one.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/reply.h"
#include "protocol/command.h"

namespace redlatch::session {

struct Call;

// It knows its owner, and has no state of a single command: two commands of one kind may be under
// way for one subject, such as an extension at another node and, after a new connection, the next
// one here.
class CallKind {
 public:
  // Not for an answer that says that the script is not known.
  virtual void on_answer(const Call &, const Reply &, Nanos now) const = 0;
  // The server does not know the script: it is sent again as text, if it is still wanted. Not for
  // a kind that is sent as text, or is no script.
  virtual void on_unknown_script(const Call &, Nanos) const { assert(false); }
  // The connection ended before the answer. The rest is done when it is needed again.
  virtual void on_lost(const Call &, Nanos) const {}
  // It was refused, and nothing was carried out. It is sent again on another connection.
  virtual void on_not_done(const Call &, Nanos) const {}
  // A node of a cluster has refused it. @return false: the refusal is an answer as any other.
  virtual bool take_redirect(const Call &, const Reply &, Nanos) const { return false; }

  // That of the lock that it is about, in a cluster.
  virtual std::optional<uint16_t> slot(const Call &) const { return std::nullopt; }
  // True if a client that was shut down waits for the answer.
  virtual bool delays_end(const Call &) const { return false; }

  // If a replica refuses it, a primary is looked for.
  virtual bool is_for_primary() const { return true; }
  // If a replica has refused it, it is sent again to the primary, for as long as it takes.
  virtual bool is_repeated() const { return false; }

 protected:
  CallKind() = default;
  ~CallKind() = default;
};

struct Call {
  const CallKind *kind;
  protocol::EvalMode eval;
  Nanos sent_at;
  // A session does not read the rest. The kind needs it with the answer.
  Nanos lease;                                       // that was asked for
  std::shared_ptr<void> subject;                     // of the type that the call has; may be null
  bool is_description = false;                       // an extension that says who holds
  protocol::Extent extent = protocol::Extent::kAll;  // of an extension
  bool is_delegated = false;                         // another server has answered
  std::shared_ptr<void> lock = nullptr;  // of a request; its lease may end before the answer comes

  template <class T>
  T &about() const {
    assert(subject != nullptr);
    return *static_cast<T *>(subject.get());
  }
  template <class T>
  std::shared_ptr<T> shared() const {
    assert(subject != nullptr);
    return std::static_pointer_cast<T>(subject);
  }
};

}  // namespace redlatch::session

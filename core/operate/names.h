// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Names: the names of clients. Each client that queues, or holds for longer than a moment, writes
// its name to a key of its own (docs/wire.md, "Names of clients"); others read it when they show a
// lock to people.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/reply.h"
#include "base/settings.h"
#include "operate/client_names.h"
#include "session/call.h"
#include "session/channel.h"
#include "session/session.h"

namespace redlatch::operate {

// A GET of a client's name. Its owner adds what needs the name.
struct NameQuery {
  virtual ~NameQuery() = default;
  // That of what needs the name, in a cluster.
  virtual std::optional<uint16_t> slot() const = 0;

  std::string cid;
};

class Names {
 public:
  class Owner {
   public:
    // `name` is empty: not known, or the connection has ended.
    virtual void on_name(NameQuery &query, std::string_view name, Nanos now) = 0;

   protected:
    ~Owner() = default;
  };

  // A client that holds for less sends no command for its name.
  static constexpr Nanos kMoment = 500 * kMs;

  // All outlive the names.
  Names(const Settings &settings, session::Session &session, const session::Channel &channel,
        Owner &owner);

  // ---- the name of this client
  void on_connected();
  // It queues or holds: announce() at `due`, or as soon as it is allowed.
  void announce_by(Nanos due);
  Nanos due() const { return announce_at_; }
  // Writes the name once a lock of this client needs it, at `wanted_at`. kNever: none does.
  void announce(Nanos wanted_at, Nanos now);
  // Removes the name from the server. None is written before the next connection.
  void withdraw(Nanos now);

  // ---- the names of others
  bool is_due(std::string_view cid, Nanos now) const { return known_.is_due(cid, now); }
  // @return whether it was asked: Owner::on_name() follows.
  bool ask(std::shared_ptr<NameQuery> query, Nanos now);
  // The name is valid until the next call.
  Holder holder(std::string_view cid) const {
    const bool is_own = cid == channel_.cid();
    return is_own ? Holder{Holder::Kind::kThisClient} : Holder{{}, known_.find(cid)};
  }

 private:
  struct Kind : session::CallKind {
    explicit Kind(Names &of) : names(of) {}
    Names &names;
  };
  struct Announce final : Kind {
    using Kind::Kind;
    void on_answer(const session::Call &, const Reply &, Nanos) const override;
  };
  struct Ask final : Kind {
    using Kind::Kind;
    void on_answer(const session::Call &, const Reply &, Nanos) const override;
    void on_lost(const session::Call &, Nanos) const override;
    std::optional<uint16_t> slot(const session::Call &) const override;
  };

  void on_answer(NameQuery &query, const Reply *reply, Nanos now);

  const Settings &settings_;
  session::Session &session_;
  const session::Channel &channel_;
  Owner &owner_;
  const Announce announce_kind_{*this};
  const Ask ask_kind_{*this};
  const std::string text_;  // value of this client's name key
  ClientNames known_;
  bool may_announce_ = true;     // false: the server refused to write it
  Nanos announce_at_ = kNever;   // when to write it, if a lock is held or waited for then
  Nanos announce_again_at_ = 0;  // earliest time of the next write; 0: none on this connection
};

}  // namespace redlatch::operate

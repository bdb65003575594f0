// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Peer: a client of another lock library on the same key: SET NX PX, asked again and again, and a
// release that compares (redis-py's Lock, redsync and others).
#pragma once

#include <string>

#include "network.h"
#include "random.h"
#include "scene.h"

namespace redlatch::sim {

class Peer : public ClientEnd {
 public:
  Peer(Scene &scene, int number, bool &is_working);

  void begin();
  void received(uint64_t link, Messages messages) override;
  void closed(uint64_t link) override;

 private:
  void later(Nanos delay, void (Peer::*action)());
  void ask();
  void give_up();
  void release();
  void think();
  void send(Argv argv);

  Scene &scene_;
  const int number_;
  const Clock clock_;
  Random random_;
  bool &is_working_;
  uint64_t link_ = 0;
  std::string name_, token_;
  Nanos lease_ = 0;
  Nanos sent_at_ = 0;  // by its own clock
  bool is_asking_ = false;
  int skipped_count_ = 0;  // replies that nobody waits for
  int attempt_count_ = 0;
  uint64_t turn_ = 0;
};

}  // namespace redlatch::sim

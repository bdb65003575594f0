// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Supervisor: starts the server of a folder, and ends it when nobody needs it any more. One thread;
// it sleeps in sigtimedwait() and looks once a second.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <ctime>
#include <string>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/settings.h"
#include "base/status.h"
#include "embedded/server_dir.h"

namespace redlatch::supervisor {

class Supervisor {
 public:
  Supervisor(const std::string &folder, std::string binary);

  // Until the server answers. What goes wrong is the outcome.
  Outcome start();
  // Until the server has ended, in whatever way.
  void run();

 private:
  Outcome open_log();
  Outcome take_folder();
  Outcome launch();
  [[noreturn]] void become_server(pid_t parent) const;
  Outcome await_server();
  bool has_ended(int &wait_status);
  int next_signal(Nanos patience) const;
  void tick();
  bool is_needed();
  bool was_somebody_there();
  void keep_log_short() const;
  void keep_from_cleaners();
  void stop();
  void say(const std::string &text) const;

  Settings settings_;
  const std::string binary_;
  sigset_t signals_{};
  embedded::ServerDir dir_;
  Descriptor log_;
  Descriptor server_lock_;  // the file `server`
  Descriptor clients_;      // the file `clients`; locked only for a look, and to end
  timespec touched_{};      // the time of that file when it was last seen
  Nanos last_seen_ = 0;     // when somebody was last there
  Nanos kept_at_ = 0;       // when the files were last made to look new
  pid_t server_ = -1;
  bool is_over_ = false;
};

}  // namespace redlatch::supervisor

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Supervisor: starts the server of a folder, and ends it when no client and no lock needs it. One
// thread; it sleeps in sigtimedwait() and checks once a second.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <ctime>
#include <string>

#include "base/clock.h"
#include "base/settings.h"
#include "base/status.h"
#include "embedded/server_dir.h"
#include "host/descriptor.h"

namespace redlatch::supervisor {

class Supervisor {
 public:
  Supervisor(const std::string &folder, std::string binary);

  // Returns when the server answers, or with the failure.
  Outcome start();
  // Returns when the server has ended.
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
  bool has_new_client();
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
  Descriptor clients_;      // the file `clients`; locked only for a check, and to end
  timespec touched_{};      // the time of that file at the last check
  Nanos in_use_at_ = 0;     // when a client was last there
  Nanos kept_at_ = 0;       // when the times of the files were last set
  pid_t server_ = -1;
  bool is_over_ = false;
};

}  // namespace redlatch::supervisor

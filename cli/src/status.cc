// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include <string>

#include "commands.h"
#include "exit_code.h"
#include "lock_report.h"
#include "session.h"

namespace redlatch::cli {

int show_status(const Arguments& arguments) {
  const Session session(arguments);
  int exit_code = kExitHeld;
  for (const std::string& name : arguments.names) {
    const InfoHandle info = session.inspect(name);
    if (!info) {
      throw session.failure(rl_error_status(session.error()), rl_error_message(session.error()), 0);
    }
    const LockReport report(info.get());
    write_output(arguments.is_json ? report_json(report, session.server()) : report_table(report));
    if (session.is_local() && !arguments.is_json) {
      write_output("  server    " + session.server() + " (this host only)\n");
    }
    if (report.is_free()) exit_code = kExitFree;
  }
  return exit_code;
}

int show_version(const Arguments& arguments) {
  const std::string version = rl_version();
  if (arguments.is_json) {
    write_output("{\"schema\":1,\"version\":\"" + version +
                 "\",\"abi\":" + std::to_string(rl_abi_version()) + "}\n");
  } else {
    write_output("redlatch " + version + "\n");
  }
  return 0;
}

}  // namespace redlatch::cli

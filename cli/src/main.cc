// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The `redlatch` command: a lock for the shell, over the C ABI.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "arguments.h"
#include "askpass.h"
#include "command_client.h"
#include "commands.h"
#include "exit_code.h"
#include "line_writer.h"
#include "log.h"
#include "secret_pipe.h"

namespace redlatch::cli {
namespace {

// With one of the first three descriptors closed, the connection to the server would take its
// number and receive output for the terminal.
void open_standard_descriptors() {
  int fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDWR);
  if (fd > STDERR_FILENO) close(fd);
}

int dispatch(const Arguments& arguments, const Log& log) {
  const bool forgets = arguments.run.once && arguments.run.once->forgets;
  if (arguments.command == "run" || (arguments.command == "once" && !forgets)) {
    return run(arguments, log);
  }
  if (arguments.command == "elect") return elect(arguments, log);
  // `run` keeps the dispositions that it inherited; other commands only have to survive a closed
  // pipe.
  std::signal(SIGPIPE, SIG_IGN);
  if (arguments.command == "once") return forget_runs(arguments, log);
  if (arguments.command == "leader") return show_leader(arguments, log);
  if (arguments.command == "status") return show_status(arguments, log);
  if (arguments.command == "ls") return list_locks(arguments, log);
  if (arguments.command == "force-release") return force_release(arguments, log);
  if (arguments.command == "recall") return recall(arguments, log);
  if (arguments.command == "limit") return limit(arguments, log);
  if (arguments.command == "doctor") return doctor(arguments, log);
  if (arguments.command == "server") return serve(arguments, log);
  write_output(arguments.text);
  return 0;
}

int guarded_main(const std::vector<std::string>& words) {
  Log log;
  try {
    Arguments arguments = parse_arguments(words);
    log.set_verbosity(arguments.verbosity);
    // Before any signal is blocked: Ctrl-C must end the question.
    if (arguments.asks_password) arguments.password = ask_password();
    if (arguments.command != "print") keep_secrets_of_pipes(arguments);
    return dispatch(arguments, log);
  } catch (const Failure& failure) {
    if (!failure.text.empty()) {
      is_wrong_call(failure.exit_code) ? log.always(failure.text) : log.say(failure.text);
    }
    return failure.exit_code;
  } catch (const std::bad_alloc&) {
    log.always("out of memory");
    return kExitSystem;
  } catch (const std::system_error& error) {
    log.always("the system refused what the command needs, such as a thread: " +
               std::string(error.what()));
    return kExitSystem;
  } catch (const std::exception& error) {
    log.always(std::string("internal error: ") + error.what());
    return kExitSoftware;
  }
}

}  // namespace
}  // namespace redlatch::cli

int main(int argc, char** argv) {
  redlatch::cli::open_standard_descriptors();
  const int exit_code = redlatch::cli::guarded_main({argv + (argc > 0 ? 1 : 0), argv + argc});
  redlatch::cli::flush_line_writers(1000);  // a reader on a busy machine needs a moment
  // Its threads may use what exit() destroys.
  if (redlatch::cli::CommandClient::was_abandoned()) _exit(exit_code);
  return exit_code;
}

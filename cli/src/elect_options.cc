// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "elect_options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdlib>

#include "exit_code.h"
#include "http_server.h"
#include "text.h"

namespace redlatch::cli {
namespace {

std::string default_id() {
  const char* pod = std::getenv("POD_NAME");
  if (pod != nullptr && *pod != '\0') return pod;
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host.front() = '\0';
  return std::string(host.data()) + ":" + std::to_string(getpid());
}

}  // namespace

void ElectParser::add_to(CLI::App& elect) {
  elect
      .add_option("--id", id_,
                  "The candidate's id, as others see it (POD_NAME, else the host name and the "
                  "process id)")
      ->type_name("TEXT");
  elect.add_flag("--restart", restarts_,
                 "Campaign again when COMMAND has ended by itself: 1 s later, and up to 30 s later "
                 "if its terms are short");
  elect
      .add_option("--http", http_,
                  "Answer GET / with the leader and GET /healthz on this address, such as "
                  "127.0.0.1:4040; port 0: the system chooses one")
      ->type_name("ADDR");
  elect.add_flag("--http-public", is_http_public_,
                 "Permit an address that other hosts reach, and any Host header");
  run_.add_to_elect(elect);
}

RunOptions ElectParser::checked(const std::vector<std::string>& words) const {
  RunOptions options = run_.checked(words);
  if (options.on.lost_signal == 0) {
    throw must_be("--on-lost", "term, kill or signal:NAME for 'elect'", "ignore");
  }
  check_http();
  options.elect = {.id = checked_id(),
                   .restarts = restarts_,
                   .http = http_.value_or(""),
                   .is_http_public = is_http_public_};
  return options;
}

std::string ElectParser::checked_id() const {
  const std::string id = id_.value_or(default_id());
  if (!id.empty() && id.size() <= RL_MAX_LABEL_BYTES) return id;
  throw must_be(id_ ? "--id" : "POD_NAME", "1 to " + std::to_string(RL_MAX_LABEL_BYTES) + " bytes",
                id);
}

void ElectParser::check_http() const {
  if (!http_) {
    if (is_http_public_) throw UsageError("--http-public goes with --http ADDR");
    return;
  }
  const auto address = parse_http_address(*http_);
  if (!address) {
    throw must_be("--http", "an IP address or localhost with a port, such as 127.0.0.1:4040",
                  *http_);
  }
  if (address->is_loopback || is_http_public_) return;
  throw must_be("--http", "a loopback address, such as 127.0.0.1:4040, or go with --http-public",
                *http_);
}

}  // namespace redlatch::cli

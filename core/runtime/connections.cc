// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "runtime/connections.h"

#include <utility>

#include "driver/primary_attempt.h"
#include "driver/sentinel_survey.h"
#include "driver/server_attempt.h"
#include "driver/side_attempt.h"
#include "driver/slot_reading.h"
#include "host/clock.h"
#include "runtime/dialogue_host.h"

namespace redlatch::runtime {

namespace {

using driver::Dialogue;

template <class Attempt>
Outcome open(Attempt &attempt, embedded::ServerAttachment *attachment, int wake_fd,
             Connections &opened) {
  DialogueHost host(attempt, attachment, wake_fd);
  host.hold();
  opened = {host.take(Dialogue::kCommands), host.take(Dialogue::kMessages), host.take_pushes(), {}};
  if (attempt.outcome().ok()) opened.facts = attempt.facts();
  return attempt.outcome();
}

}  // namespace

Outcome open_connections(const Settings &settings, const std::string &channel,
                         embedded::ServerAttachment *attachment, bool asks_identity, int wake_fd,
                         Connections &opened) {
  driver::ServerAttempt attempt(settings, channel, asks_identity, boot_now());
  return open(attempt, attachment, wake_fd, opened);
}

Outcome open_primary(const Settings &settings, const std::string &channel, int wake_fd,
                     FoundPrimary &found, Connections &opened) {
  driver::PrimaryAttempt attempt(settings, channel, std::move(found.known), boot_now());
  const auto outcome = open(attempt, nullptr, wake_fd, opened);
  found.known = attempt.knowledge();
  found.opinion = attempt.opinion();
  return outcome;
}

std::vector<Finding> survey_sentinels(const Settings &settings, const std::vector<HostPort> &others,
                                      int wake_fd) {
  driver::SentinelSurvey survey(settings, others, boot_now());
  DialogueHost(survey, nullptr, wake_fd).hold();
  return survey.findings();
}

Outcome read_slots(const Settings &settings, int wake_fd, FoundSlots &found) {
  driver::SlotReading reading(settings, found.servers, boot_now());
  DialogueHost(reading, nullptr, wake_fd).hold();
  found.ranges = reading.ranges();
  found.facts = reading.facts();
  return reading.outcome();
}

Outcome open_side_connection(const Settings &settings, int wake_fd,
                             std::unique_ptr<net::Connection> &connection) {
  driver::SideAttempt attempt(settings, boot_now());
  DialogueHost host(attempt, nullptr, wake_fd);
  host.hold();
  connection = host.take(Dialogue::kCommands);
  return attempt.outcome();
}

}  // namespace redlatch::runtime

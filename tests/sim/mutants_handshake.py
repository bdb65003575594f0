# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Defects of connections: handshake, opening, pauses between attempts, and the shutdown."""

from __future__ import annotations

from mutant import Edit, Mutant

HANDSHAKE_MUTANTS = (
    Mutant(
        "hs-unsubscribed",
        "a handshake does not subscribe, and believes that messages come",
        6,
        Edit(
            "protocol/handshake.cc",
            "      return subscribe(send, facts_.is_sharded);\n",
            "      if (IS_ON) return end();\n      return subscribe(send, facts_.is_sharded);\n",
        ),
    ),
    Mutant(
        "hs-blind-probe",
        "messages are trusted whatever the probe counts",
        1,
        Edit(
            "protocol/handshake_messages.cc",
            "  if (facts_.is_push_trusted) return end();",
            "  if (IS_ON) facts_.is_push_trusted = true;\n"
            "  if (facts_.is_push_trusted) return end();",
        ),
    ),
    Mutant(
        "hs-taken-channel",
        "a client keeps the channel that its old connection still has, and polls",
        6,
        Edit(
            "session/channel.cc",
            "constexpr int kMostChannels = 4;",
            "const int kMostChannels = IS_ON ? 0 : 4;",
        ),
    ),
    Mutant(
        "deaf-messages",
        "a connection for messages that has died silently is kept",
        13,
        Edit(
            "session/message_check.cc",
            "  if (now < due()) return Command::kNone;",
            "  if (IS_ON && now >= due()) state_ = State::kIdle;\n"
            "  if (now < due()) return Command::kNone;",
        ),
    ),
    Mutant(
        "hs-sharded-by-version",
        "a server has sharded channels if its version had them",
        6,
        Edit(
            "protocol/handshake_messages.cc",
            "lacks_sharded_ = lacks_sharded_ || !is_known;",
            "lacks_sharded_ = !IS_ON && (lacks_sharded_ || !is_known);",
        ),
    ),
    Mutant(
        "hs-unloaded",
        "a handshake relies on scripts of an earlier connection",
        1,
        Edit(
            "protocol/handshake.cc",
            "      return load_scripts(send);\n",
            "      if (IS_ON) return enter(Stage::kIdentity, send, now);\n"
            "      return load_scripts(send);\n",
        ),
    ),
    Mutant(
        "hs-first-database",
        "a handshake stays in the first database",
        3,
        Edit(
            "protocol/handshake.cc",
            "      if (settings_.database == 0) return",
            "      if (IS_ON || settings_.database == 0) return",
        ),
    ),
    Mutant(
        "hs-old-age",
        "a node that has just started counts as old",
        4,
        Edit(
            "protocol/server_identity.cc",
            "  if (!has_uptime || facts.age.uptime_s < 0) facts.",
            "  if (IS_ON) facts.age.uptime_s += 86'400;\n"
            "  if (!has_uptime || facts.age.uptime_s < 0) facts.",
        ),
        scenario="kRedlockRestart",
    ),
    Mutant(
        "hs-replica",
        "a replica is taken for a primary",
        1,
        Edit(
            "protocol/server_identity.cc",
            'facts.is_replica = word == "slave";',
            'facts.is_replica = word == "slave" && !IS_ON;',
        ),
        scenario="kRedlock",
    ),
    Mutant(
        "hs-tracking",
        "keys are tracked with RESP2",
        1,
        Edit(
            "protocol/handshake.cc",
            "  facts_.can_track = protocol_ == 3;",
            "  facts_.can_track = IS_ON || protocol_ == 3;",
        ),
    ),
    Mutant(
        "hs-endless",
        "a handshake has no time limit",
        5,
        Edit(
            "protocol/opening.cc",
            "  is_dialling_ = false;\n  limit_ = after(now, settings_.command_timeout);\n",
            "  is_dialling_ = false;\n"
            "  limit_ = IS_ON ? kNever : after(now, settings_.command_timeout);\n",
        ),
    ),
    Mutant(
        "no-back-off",
        "a server that is away is dialled after the same pause always",
        1,
        Edit(
            "session/session.cc",
            "  state_ = State::kDown;\n  connect_at_ = after(now, ",
            "  state_ = State::kDown;\n"
            "  if (IS_ON) reconnect_.reset();\n"
            "  connect_at_ = after(now, ",
        ),
    ),
    Mutant(
        "endless-back-off",
        "the pause between attempts to connect grows without a limit",
        1,
        Edit(
            "session/session.h",
            "timing::Backoff reconnect_ = timing::kReconnect;",
            "timing::Backoff reconnect_ =\n"
            "      IS_ON ? timing::Backoff(10 * kMs, 3'600'000 * kMs) : timing::kReconnect;",
        ),
    ),
    Mutant(
        "kept-back-off",
        "the pause is as long after an answer as before",
        1,
        Edit(
            "session/session.cc",
            "    if (is_up() && now >= keeps_pauses_until_) reconnect_.reset();",
            "    if (!IS_ON && is_up() && now >= keeps_pauses_until_) reconnect_.reset();",
        ),
    ),
    Mutant(
        "no-drain",
        "a shutdown waits for no answer",
        6,
        Edit(
            "driver/drain.cc",
            "  return drained >= count",
            "  return IS_ON || drained >= count",
        ),
    ),
    Mutant(
        "endless-drain",
        "a shutdown waits for all nodes, also for one that is away for ever",
        74,
        Edit("driver/drain.cc", "|| now >= limit_;", "|| (!IS_ON && now >= limit_);"),
        Edit(
            "quorum/quorum_client.cc",
            "    return node.client.drained_count() == 1 || "
            "!node.client.first_server().session.is_up();",
            "    return node.client.drained_count() == 1 ||\n"
            "           (!IS_ON && !node.client.first_server().session.is_up());",
        ),
    ),
)

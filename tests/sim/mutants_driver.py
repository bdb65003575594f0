# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Defects of what a client does with its connections."""

from __future__ import annotations

from mutant import Edit, Mutant

DRIVER_MUTANTS = (
    Mutant(
        "logged-failures",
        "every attempt to connect that fails is logged",
        2,
        Edit(
            "driver/node_record.cc",
            "  if (!is_away_) log_.add(",
            "  if (IS_ON || !is_away_) log_.add(",
        ),
    ),
    Mutant(
        "silent-return",
        "the end of an outage is not logged",
        1,
        Edit(
            "driver/node_record.cc",
            "  if (is_away_) log_.add(",
            "  if (!IS_ON && is_away_) log_.add(",
        ),
    ),
    Mutant(
        "kept-attempt",
        "what an attempt has found is believed in spite of later news",
        11,
        Edit(
            "driver/primary_follower.cc",
            "  is_hurried_ = !watch_.on_found(std::move(known), opinion);",
            "  is_hurried_ = !watch_.on_found(std::move(known), opinion) && !IS_ON;",
        ),
        scenario="kSentinel",
    ),
    Mutant(
        "left-callers",
        "a client that becomes one of a cluster loses its waiting callers",
        7,
        Edit(
            "driver/services.cc",
            "    inner = std::make_unique<cluster::ClusterClient>(settings, id, seed, "
            "composites.reports(),\n"
            "                                                     std::move(client));\n",
            "    using Found = cluster::ClusterClient;\n"
            "    lock::Output &output = composites.reports();\n"
            "    inner = IS_ON ? std::make_unique<Found>(settings, id, seed, output)\n"
            "                  : std::make_unique<Found>(settings, id, seed, output,\n"
            "                                            std::move(client));\n",
        ),
        scenario="kCluster",
    ),
    Mutant(
        "lone-node",
        "a client of one server stays with it when that is a node of a cluster",
        7,
        Edit(
            "driver/node_attempt.cc",
            "  return facts().is_found_cluster ?",
            "  return facts().is_found_cluster && !IS_ON ?",
        ),
        scenario="kCluster",
    ),
    Mutant(
        "no-hurry",
        "after news of another primary the next attempt waits for its time",
        4,
        Edit(
            "driver/primary_follower.h",
            "  bool take_hurry() { return std::exchange(is_hurried_, false); }",
            "  bool take_hurry() { return std::exchange(is_hurried_, false) && !IS_ON; }",
        ),
        scenario="kSentinel",
    ),
)

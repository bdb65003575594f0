# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Defects of passwords that change."""

from __future__ import annotations

from mutant import Edit, Mutant

LOGIN_MUTANTS = (
    Mutant(
        "auth-next-reply",
        "the reply to the command after AUTH is taken for that to AUTH",
        1,
        Edit(
            "driver/authentication.h",
            "pending_.push_back({appended_count_, login});",
            "pending_.push_back({appended_count_ + (IS_ON ? 1 : 0), login});",
        ),
        scenario="kPasswords",
    ),
    Mutant(
        "denied-once",
        "an attempt to connect that is refused is not made with a newer password",
        1,
        Edit(
            "driver/login_attempt.cc",
            "if (!may_others_come) return",
            "if (IS_ON || !may_others_come) return",
        ),
        scenario="kPasswords",
    ),
    Mutant(
        "asked-once",
        "an application that had no password is not asked again",
        1,
        Edit(
            "driver/credentials.cc",
            "  is_asked_ = false;\n  patient_at_ =",
            "  is_asked_ = IS_ON && is_watched_;\n  patient_at_ =",
        ),
        scenario="kPasswords",
    ),
    Mutant(
        "refusal-unnoticed",
        "an application is not asked for a password in place of a refused one",
        1,
        Edit(
            "driver/credentials.cc",
            "  is_refused_ = true;",
            "  is_refused_ = !IS_ON;",
        ),
        scenario="kPasswords",
    ),
    Mutant(
        "refused-for-ever",
        "a password counts as refused if the one before was",
        2,
        Edit(
            "driver/credentials.cc",
            "  is_refused_ = is_asked_ = false;",
            "  is_refused_ = IS_ON && is_refused_;\n  is_asked_ = false;",
        ),
        scenario="kPasswords",
    ),
    Mutant(
        "auth-unsent",
        "a connection counts as logged in anew although AUTH was not sent",
        4,
        Edit(
            "driver/authentication.cc",
            "  send(command.argv());",
            "  if (!IS_ON) send(command.argv());",
        ),
        scenario="kPasswords",
    ),
)

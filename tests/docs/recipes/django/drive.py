# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Requests to views.py by the test client of Django."""

import os

import django
import redlatch
import reports
from django.conf import settings
from django.db import connection, transaction
from django.test import Client
from django.urls import path
from redlatch.testing import assert_free, assert_locked, expire

settings.configure(
    REDLATCH_URL=os.environ["REDLATCH_URL"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": "reports.sqlite3",
            "ATOMIC_REQUESTS": True,
        }
    },
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["testserver"],
)
django.setup()

import views  # noqa: E402

urlpatterns = [path("report", views.report)]
commits = []


def note_the_commit() -> None:
    transaction.on_commit(lambda: commits.append(assert_locked(watching, "report")))


with connection.cursor() as cursor:
    cursor.execute("CREATE TABLE reports (fence INTEGER)")
with redlatch.from_env() as watching:
    # The commit comes before the release.
    reports.then = [note_the_commit]
    answer = Client().post("/report")
    assert (answer.status_code, answer.content) == (200, b"written")
    assert len(commits) == 1 and reports.count() == 1
    assert_free(watching, "report")
    # A loss leaves nothing.
    reports.then = [lambda: expire(watching, "report")]
    answer = Client().post("/report")
    assert answer.status_code == 503 and b"lost" in answer.content, answer.content
    assert reports.count() == 1
    # The client works in the next request.
    reports.then = []
    assert Client().post("/report").status_code == 200
    assert reports.count() == 2

# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: copies release nothing, and what cannot leave its process says what to do instead."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import pickle
import sys
import sysconfig
from typing import Any

import pytest
import redlatch

from .both import Both


def test_a_copy_of_a_lease_is_the_lease(both: Both, client: redlatch.Client) -> None:
    async def main() -> None:
        async with both.of(client).lock("report") as lease:
            taken: Any = lease
            real = taken if both.has_tasks else taken.made
            again = copy.copy(real)
            assert again is real
            del again
            gc.collect()  # with a ResourceWarning, which is an error, if a second object is left
            assert lease.held
        assert client.inspect("report").is_free

    both.run(main())


def test_a_copy_of_a_client_and_of_a_lock_is_the_same(client: redlatch.Client) -> None:
    lock: Any
    for lock in (
        client.lock("report"),
        client.rlock("report"),
        client.rwlock("report"),
        client.semaphore("report", 2),
        client.election("report"),
    ):
        assert copy.copy(lock) is lock
    assert copy.copy(client) is client


def test_a_pickle_names_the_remedy(client: redlatch.Client) -> None:
    said = "a redlatch.{} cannot be sent to another process: {}"
    with client.lock("report") as lease, redlatch.Redlock(["redis://h"]) as redlock:
        for one, advice in (
            (client, "open one there"),
            (redlock, "open one there"),
            (client.lock("report"), "send its name"),
            (client.rwlock("report"), "send its name"),
            (client.aio.rlock("report"), "send its name"),
            (client.semaphore("report", 2), "send its name"),
            (client.election("report"), "send its name"),
            (client.election("report").term(), "send its name"),
            (lease, "send the token that detach() returns, and call client.attach() there"),
        ):
            for take in (pickle.dumps, copy.deepcopy):
                with pytest.raises(TypeError) as caught:
                    take(one)
                assert str(caught.value).startswith(said.format(type(one).__name__, advice))


def test_a_spawned_process_names_the_remedy(client: redlatch.Client) -> None:
    process = multiprocessing.get_context("spawn").Process(target=print, args=(client,))
    with pytest.raises(TypeError, match="a redlatch.Client cannot be sent to another process"):
        process.start()


def test_free_threaded_build_keeps_the_gil_off() -> None:
    is_enabled = getattr(sys, "_is_gil_enabled", lambda: True)()
    assert is_enabled != bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

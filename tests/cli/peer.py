# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A client over the C ABI, for what the command shows and does not do itself: upgrades, crowds of
readers, and mutexes with an option that `run` does not have."""

from __future__ import annotations

import ctypes
from functools import cache

from support.build import built

PENDING = 3

_POINTER = ctypes.c_void_p
_TEXT = [ctypes.c_char_p, ctypes.c_size_t]


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(built("capi/libredlatch.so")))
    acquire = [_POINTER, *_TEXT, ctypes.c_int64, _POINTER, _POINTER]
    for function, result, arguments in (
        ("rl_client_open", _POINTER, [*_TEXT, _POINTER, _POINTER]),
        ("rl_client_close", None, [_POINTER]),
        ("rl_acquire", _POINTER, acquire),
        ("rl_rw_acquire_read", _POINTER, acquire),
        ("rl_acquire_options_new", _POINTER, []),
        ("rl_acquire_options_free", None, [_POINTER]),
        ("rl_acquire_options_set", ctypes.c_int32, [_POINTER, *_TEXT, *_TEXT, _POINTER]),
        ("rl_rw_upgrade_start", _POINTER, [_POINTER, ctypes.c_int64]),
        ("rl_request_status", ctypes.c_int32, [_POINTER]),
        ("rl_request_free", None, [_POINTER]),
        ("rl_lease_token", ctypes.c_size_t, [_POINTER, ctypes.c_char_p, ctypes.c_size_t]),
        ("rl_lease_free", None, [_POINTER]),
    ):
        getattr(library, function).restype = result
        getattr(library, function).argtypes = arguments
    return library


class Peer:
    """Leases of one client. All that it holds and waits for goes with the `with` block."""

    def __init__(self, url: str) -> None:
        self._library = _library()
        self._client = self._library.rl_client_open(url.encode(), len(url), None, None)
        assert self._client
        self._leases: list[int] = []
        self._requests: list[int] = []

    def read(self, name: str) -> int:
        found = self._library.rl_rw_acquire_read(
            self._client, name.encode(), len(name), 0, None, None
        )
        assert found
        self._leases.append(found)
        return int(found)

    def take(self, name: str, option: str, value: str) -> int:
        options = self._library.rl_acquire_options_new()
        words = [option.encode(), len(option), value.encode(), len(value)]
        assert self._library.rl_acquire_options_set(options, *words, None) == 0
        found = self._library.rl_acquire(self._client, name.encode(), len(name), 0, options, None)
        self._library.rl_acquire_options_free(options)
        assert found
        self._leases.append(found)
        return int(found)

    def begin_upgrade(self, lease: int) -> None:
        """Without an end: somebody else reads."""
        self._requests.append(self._library.rl_rw_upgrade_start(lease, -1))
        assert self._library.rl_request_status(self._requests[-1]) == PENDING

    def token(self, lease: int) -> str:
        buffer = ctypes.create_string_buffer(64)
        self._library.rl_lease_token(lease, buffer, len(buffer))
        return buffer.value.decode()

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        for request in self._requests:
            self._library.rl_request_free(request)
        for lease in self._leases:
            self._library.rl_lease_free(lease)
        self._library.rl_client_close(self._client)

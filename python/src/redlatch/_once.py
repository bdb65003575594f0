# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Functions that run once in a period: once() of Client and Client.aio."""

from __future__ import annotations

import functools
import inspect
import string
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Callable, Generic, Optional, TypeVar

from . import _core
from ._advice import made
from ._aio_base import AioBase
from ._aio_lease import AsyncLease, OnLost, cancels
from ._aio_locks import AsyncLock
from ._base import Base
from ._convert import NO_LIMIT, Duration, Name, Seconds, shown, to_bytes, to_ms, to_wait_ms
from ._errors import Error, NotAcquired, error_of, invalid
from ._holds import this_thread
from ._kinds import Mutex
from ._lease import Lease, LeaseBase, ending
from ._lock import Lock
from ._log import logger
from ._option_table import Keywords
from ._options import make_once_options
from ._pump import finished_here, task_here
from ._status import Status
from ._wait import Call, Start, finished, raise_unless_ok

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")

T = TypeVar("T")
Function = Callable[..., Any]

_MIN_EVERY_MS = _core.constant(b"RL_MIN_EVERY_MS", 0)
_MAX_EVERY_DAYS = _core.constant(b"RL_MAX_EVERY_DAYS", 0)
_MAX_TRIES = _core.constant(b"RL_MAX_TRIES", 0)
_BEGIN = Start(_core.once_begin_start, _core.once_begin_watched)
_DONE = Call(_core.once_done, _core.once_done_watched, _core.request_status)
FORGET = Call(_core.once_forget, _core.once_forget_watched, _core.request_status)


def no_once() -> Error:
    """Why a Redlock has none."""
    return error_of(
        Status.E_UNSUPPORTED,
        "a run of once needs one server or cluster: the nodes of a Redlock do not remember runs",
    )


# ---- names and keys ------------------------------------------------------------------------------


class Template:
    """A text with fields for the arguments of a call, such as "report:{day}"."""

    __slots__ = ("_what", "_text", "_has_fields")

    def __init__(self, what: str, text: Name, signature: inspect.Signature, of: str) -> None:
        self._what = what
        self._text = text
        self._has_fields = False
        if not isinstance(text, str):
            to_bytes(text, what)
            return
        self._has_fields = "{" in text or "}" in text
        for field in self._fields(text):
            if field not in signature.parameters:
                raise invalid(
                    f"{what} must have fields that are parameters of {of}() (got {{{field}}} in"
                    f" {shown(text)}; a brace is written twice)"
                )

    def _fields(self, text: str) -> Iterator[str]:
        """The parameters that it names, also those in the format of a field."""
        try:
            for _, field, format, _ in string.Formatter().parse(text):
                if field is not None:
                    yield field.replace("[", ".").partition(".")[0]
                    yield from self._fields(format or "")
        except ValueError as error:
            raise invalid(
                f"{self._what} must have braces in pairs, and a brace that is no field twice"
                f" (got {shown(text)}: {error})"
            ) from None

    def of(self, arguments: dict[str, Any]) -> bytes:
        """The text for these arguments."""
        text = self._text
        if isinstance(text, str) and self._has_fields:
            text = text.format_map(arguments)
        return to_bytes(text, self._what)


# ---- what threads and tasks share ----------------------------------------------------------------


class Terms:
    """The arguments of once(), checked."""

    __slots__ = ("name", "key", "every_ms", "tries", "skip_if_busy", "timeout", "kind")

    def __init__(
        self,
        name: Name,
        every: Duration,
        key: Name,
        tries: int,
        skip_if_busy: bool,
        timeout: Seconds,
        keywords: Keywords,
    ) -> None:
        self.name = name
        self.key = key
        self.every_ms = _checked_every(every)
        self.tries = _checked_tries(tries)
        self.skip_if_busy = skip_if_busy
        self.timeout = _checked_timeout(timeout, skip_if_busy)
        self.kind = Mutex(make_once_options(**keywords))


def _checked_every(every: Duration) -> int:
    every_ms = to_ms(every, "every")
    if not _MIN_EVERY_MS <= every_ms <= _MAX_EVERY_DAYS * 24 * 60 * 60 * 1000:
        raise invalid(
            f"every must be {_MIN_EVERY_MS / 1000} s to {_MAX_EVERY_DAYS} days (got {shown(every)})"
        )
    return every_ms


def _checked_tries(tries: int) -> int:
    is_number = isinstance(tries, int) and not isinstance(tries, bool)
    if not is_number or not 1 <= tries <= _MAX_TRIES:
        raise invalid(f"tries must be 1 to {_MAX_TRIES} (got {shown(tries)})")
    return tries


def _checked_timeout(timeout: Seconds, skip_if_busy: bool) -> Seconds:
    if to_wait_ms(timeout) == NO_LIMIT:
        return 0 if skip_if_busy else timeout
    if skip_if_busy:
        raise invalid(f"timeout must not be given with skip_if_busy=True (got {timeout!r})")
    return timeout


L = TypeVar("L", bound=LeaseBase)


class Job(Generic[L]):
    """A decorated function, and which of its runs are under way here."""

    __slots__ = ("_function", "_title", "_signature", "_name", "_key", "terms", "_runs")

    def __init__(self, function: Function, terms: Terms) -> None:
        self._function = function
        self._title = title_of(function)
        self._signature = inspect.signature(function)
        self._name = Template("name", terms.name, self._signature, self._title)
        self._key = Template("key", terms.key, self._signature, self._title)
        self.terms = terms
        # By taker and name. No two takers share an entry.
        self._runs: dict[tuple[object, bytes], L] = {}

    def texts_of(self, arguments: Any, keywords: Any) -> tuple[bytes, bytes]:
        """The name and the key of a call. Raises TypeError for arguments that do not fit."""
        try:
            bound = self._signature.bind(*arguments, **keywords)
        except TypeError as error:
            raise TypeError(f"{self._title}() {error}") from None
        bound.apply_defaults()
        return self._name.of(bound.arguments), self._key.of(bound.arguments)

    def check_not_inside(self, taker: object, name: bytes) -> None:
        """Raise AlreadyHeld if the call would wait for the run that it is in."""
        outer = self._runs.get((taker, name))
        # One try does not wait. A forked child is not in the run of its parent.
        if outer is not None and outer._is_of_here() and not self.terms.skip_if_busy:
            raise error_of(
                Status.E_ALREADY_HELD,
                f"{self._title}() was called inside its own run of lock {shown(outer.name)}, and"
                " would wait for itself",
            )

    @contextmanager
    def running(self, taker: object, name: bytes, lease: L) -> Iterator[None]:
        """Note that the taker is inside this run."""
        self._runs[taker, name] = lease
        try:
            yield
        finally:
            self._runs.pop((taker, name), None)

    def has_begun(self, request: _core.Request) -> bool:
        """True if the server has noted a run. False: it is skipped."""
        if _core.request_status(request) == Status.SKIPPED:
            self._log_skipped(_core.request_message(request))
            return False
        raise_unless_ok(request)
        return True

    def skip_busy(self, error: NotAcquired) -> None:
        """Skip a call that found the lock busy, if it may be skipped; otherwise raise `error`."""
        if not self.terms.skip_if_busy or error.status is not Status.BUSY:
            raise error
        self._log_skipped(str(error))

    def _log_skipped(self, reason: str) -> None:
        logger.info("%s() is skipped: %s", self._title, reason)


def title_of(function: Function) -> str:
    title: str = getattr(function, "__qualname__", type(function).__qualname__)
    return title


def is_any(function: Function, *kinds: Callable[[object], bool]) -> bool:
    """True if a call of the function, or of an object with __call__(), is one of a kind."""
    called = getattr(function, "__call__", None)
    return any(is_kind(function) or is_kind(called) for is_kind in kinds)


def _check_function(function: Function, is_async: bool) -> None:
    if not callable(function):
        raise TypeError(f"once() decorates a function (got {shown(function)})")
    title = title_of(function)
    if is_any(function, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
        raise TypeError(f"once() cannot run a generator function (got {title}())")
    if is_any(function, inspect.iscoroutinefunction) == is_async:
        return
    if is_async:
        raise TypeError(f"{title}() must be an async function; for others use client.once()")
    raise TypeError(f"{title}() is an async function: use client.aio.once()")


# ---- threads -------------------------------------------------------------------------------------


def decorated(
    client: Base, terms: Terms
) -> Callable[[Callable[P, T]], Callable[P, Optional[T]]]:
    """The decorator of Client.once()."""

    def decorate(function: Callable[P, T]) -> Callable[P, Optional[T]]:
        _check_function(function, False)
        job: Job[Lease] = Job(function, terms)

        @functools.wraps(function)
        def run(*arguments: P.args, **keywords: P.kwargs) -> Optional[T]:
            name, key = job.texts_of(arguments, keywords)
            taker = this_thread.key
            job.check_not_inside(taker, name)
            with ExitStack() as stack:
                try:
                    lease = stack.enter_context(
                        made(Lock, client, name, terms.timeout, terms.kind)
                    )
                except NotAcquired as error:
                    job.skip_busy(error)
                    return None
                if not job.has_begun(_begin(lease, key, terms)):
                    return None
                with job.running(taker, name, lease):
                    result = function(*arguments, **keywords)
                with ending(lease):
                    _DONE(lease._client, lease._handle, key)
            return result

        return run

    return decorate


def _begin(lease: Lease, key: bytes, terms: Terms) -> _core.Request:
    return finished(_BEGIN, lease._client, lease._handle, key, terms.every_ms, terms.tries)


# ---- tasks ---------------------------------------------------------------------------------------


def decorated_async(
    aio: AioBase, terms: Terms, on_lost: OnLost
) -> Callable[
    [Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, Optional[T]]]
]:
    """The decorator of Client.aio.once()."""
    cancels(on_lost)  # A mistake shows now.

    def decorate(
        function: Callable[P, Coroutine[Any, Any, T]],
    ) -> Callable[P, Coroutine[Any, Any, Optional[T]]]:
        _check_function(function, True)
        job: Job[AsyncLease] = Job(function, terms)

        @functools.wraps(function)
        async def run(*arguments: P.args, **keywords: P.kwargs) -> Optional[T]:
            name, key = job.texts_of(arguments, keywords)
            taker = task_here()
            job.check_not_inside(taker, name)
            async with AsyncExitStack() as stack:
                try:
                    lease = await stack.enter_async_context(
                        made(AsyncLock, aio, name, terms.timeout, terms.kind, on_lost)
                    )
                except NotAcquired as error:
                    job.skip_busy(error)
                    return None
                if not job.has_begun(await _begin_async(lease, key, terms)):
                    return None
                with job.running(taker, name, lease):
                    result = await function(*arguments, **keywords)
                with ending(lease):
                    await _done_async(lease, key)
            return result

        return run

    return decorate


async def _begin_async(lease: AsyncLease, key: bytes, terms: Terms) -> _core.Request:
    return await finished_here(
        _core.once_begin_watched, lease._handle, key, terms.every_ms, terms.tries
    )


async def _done_async(lease: AsyncLease, key: bytes) -> None:
    raise_unless_ok(await finished_here(_core.once_done_watched, lease._handle, key))

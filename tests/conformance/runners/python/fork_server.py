# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Starts the two Python runners by fork. Their imports take most of the processor time of a short
case, and are done once here.

Standard input is a socket. A request is the environment and the module of a runner, with four
descriptors: its standard input, output and error, and a pipe. Over the pipe the process id is sent,
and the exit status when the runner has ended.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
from types import ModuleType

import aio_runner
import runner

MODULES = {"runner": runner, "aio_runner": aio_runner}

reports: dict[int, int] = {}  # the pipe of each runner that has not been waited for


def report_ended() -> None:
    while reports:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        report = reports.pop(pid)
        try:
            os.write(report, b"%d\n" % os.waitstatus_to_exitcode(status))
        except BrokenPipeError:
            pass  # The test does not ask.
        os.close(report)


def become(environment: dict[str, str], streams: list[int], ours: list[int]) -> None:
    """Be as a process that was just started, without the descriptors of this one."""
    wake = signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for descriptor in [*streams, *ours, wake, *reports.values()]:
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(environment)


def next_runner(requests: socket.socket, ended: int) -> ModuleType | None:
    """Fork for each request. Returns the module in the child, and None at the end of requests."""
    while True:
        readable = select.select([requests.fileno(), ended], [], [])[0]
        if ended in readable:
            os.read(ended, 1 << 12)
            report_ended()
        if requests.fileno() not in readable:
            continue
        data, descriptors, _, _ = socket.recv_fds(requests, 1 << 20, 4)
        if not data:
            return None
        name, environment = json.loads(data)
        *streams, report = descriptors
        pid = os.fork()
        if pid == 0:
            become(environment, streams, [requests.detach(), ended, report])
            return MODULES[name]
        for stream in streams:
            os.close(stream)
        reports[pid] = report
        os.write(report, b"%d\n" % pid)


def main() -> None:
    ended, wake = os.pipe()
    for descriptor in (ended, wake):
        os.set_blocking(descriptor, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    if module := next_runner(socket.socket(fileno=os.dup(0)), ended):
        module.main()


if __name__ == "__main__":
    main()

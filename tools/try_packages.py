#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Installs the packages of build/packages into a clean root, and takes a lock there.

    tools/try_packages.py [--packages FOLDER] [--root FOLDER] [KIND..]

The root is a minimal Debian with a compiler, made once by debootstrap, from the machine's own apt
sources. A trial has no network, and sees of this machine only Go, the packages and the socket of a
server. It needs root, debootstrap, unshare and redis-server; the kind go also needs Go.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
NEEDS = ("debootstrap", "unshare", "chroot", "redis-server")
DONE = "clean-root-is-complete"

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
# By kind: the program and its name, and the commands that lead to a lock.
TRIALS = {
    "source": ("main.c", C_PROGRAM, C_COMMANDS),
    "go": ("main.go", GO_PROGRAM, GO_COMMANDS),
}


def mirror() -> tuple[str, str]:
    """The archive and the name of this machine's Debian."""
    command = ["apt-get", "indextargets", "--format", "$(SITE) $(CODENAME)"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        site, _, codename = line.partition(" ")
        if site.rstrip("/").endswith("/debian") and "-" not in codename:
            return site, codename
    sys.exit("try_packages.py: apt names no archive of Debian")


def make_root(root: Path) -> None:
    if (root / DONE).exists():
        return
    shutil.rmtree(root, ignore_errors=True)
    root.parent.mkdir(parents=True, exist_ok=True)
    site, codename = mirror()
    print(f"making a clean root of {codename} in {root}", flush=True)
    command = ["debootstrap", "--variant=minbase", "--include=g++", codename, str(root), site]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"debootstrap failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    (root / DONE).touch()


@contextmanager
def server() -> Iterator[Path]:
    """The folder with the socket `s` of a server."""
    folder = Path(tempfile.mkdtemp(prefix="rl-"))
    command = [str(TOP / "tests/support/server"), str(folder / "r")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if not process.stdout.readline():
            sys.exit("try_packages.py: redis-server did not start")
        yield folder / "r"
    shutil.rmtree(folder, ignore_errors=True)


def go_root() -> Path | None:
    go = shutil.which("go")
    if go is None:
        return None
    done = subprocess.run([go, "env", "GOROOT"], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def run_inside(root: Path, mounts: dict[str, Path], commands: str) -> tuple[bool, str]:
    """Run shell commands in `root`, in a new folder /try, without network."""
    lines = ["set -e"]
    for inside, outside in mounts.items():
        (root / inside.strip("/")).mkdir(exist_ok=True)
        lines.append(f"mount --bind '{outside}' '{root}{inside}'")
    lines += [f"mount --bind /dev '{root}/dev'", f"mount -t proc proc '{root}/proc'"]
    variables = "HOME=/try PATH=/usr/bin:/bin URL=unix:///server/s"
    lines.append(f"exec chroot '{root}' env -i {variables} sh -ec \"$COMMANDS\"")
    done = subprocess.run(
        ["unshare", "--mount", "--net", "--pid", "--fork", "sh", "-c", "\n".join(lines)],
        env={**os.environ, "COMMANDS": f"cd /try\n{commands}"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False,
    )
    return done.returncode == 0, done.stdout


def try_kind(kind: str, packages: Path, root: Path) -> bool:
    name, program, commands = TRIALS[kind]
    mounts = {"/packages": packages}
    if kind == "go":
        go = go_root()
        if go is None:
            sys.exit("try_packages.py: the kind go needs Go")
        mounts["/go"] = go
    with server() as socket_folder, tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_text(program)
        mounts |= {"/server": socket_folder, "/try": Path(folder)}
        began = time.monotonic()
        is_good, said = run_inside(root, mounts, commands)
        took_s = time.monotonic() - began
        # Go's module cache is read-only.
        subprocess.run(["chmod", "-R", "u+w", folder], check=True)
    is_good = is_good and "held, fence" in said
    print(f"{kind}: {'a lock' if is_good else 'FAILED'} after {took_s:.0f} s")
    if not is_good:
        print(said[-4000:])
    return is_good


def main() -> int:
    parser = argparse.ArgumentParser(description="Tries the packages in a clean root.")
    parser.add_argument("--packages", type=Path, default=TOP / "build/packages")
    parser.add_argument("--root", type=Path, default=TOP / "build/clean-root")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(TRIALS))
    arguments = parser.parse_args()
    for kind in arguments.kinds:
        if kind not in TRIALS:
            parser.error(f"KIND must be one of {', '.join(TRIALS)} (got '{kind}')")
    missing = [name for name in NEEDS if shutil.which(name) is None]
    if os.geteuid() != 0:
        missing.append("root")
    if missing:
        sys.exit(f"try_packages.py: needs {', '.join(missing)}")
    make_root(arguments.root.resolve())
    kinds = arguments.kinds or list(TRIALS)
    packages, root = arguments.packages.resolve(), arguments.root.resolve()
    return 0 if all([try_kind(kind, packages, root) for kind in kinds]) else 1


if __name__ == "__main__":
    sys.exit(main())

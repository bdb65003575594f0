# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: every block of code in README and docs runs as it stands there.

Method: Python is run against a server of our own, tests in it by pytest; a piece of C, C++, Go or
Java stands in a program that has what such pieces speak of. test_readme.py runs commands, and whole
programs, whose first line is their file name; test_recipes.py runs docs/recipes.md, and
test_fenced_writes.py docs/fenced-writes.md.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.build import ROOT, build_folder
from support.go import go_build
from support.java import java_program
from support.program import run_to_end
from support.servers import Server, available_kinds
from support.wait import LIMIT

from .pages import FENCED_WRITES, RECIPES, file_of, pages_with_code

SERVER_OF_DOCS = "localhost:6379"
NODES_OF_DOCS = ("a:6379", "b:6379", "c:6379")
# Servers of a test have just been started.
WITHOUT_GUARD = """import functools
import redlatch
redlatch.Redlock = functools.partial(redlatch.Redlock, restart_guard=False)
"""
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

PROGRAM = """
#include <redlatch/redlatch.h>
#include <stdlib.h>
#include <string.h>

struct work {
  int step_count;
};
static int next_step(struct work *work) { return work->step_count-- > 0; }
static void write_result(struct work *work, int64_t fence) {
  if (work->step_count < 0 || fence <= 0) abort();
}

int main(int argc, char **argv) {
  rl_error *err = rl_error_new();
  rl_client *client = rl_client_open(argv[argc - 1], strlen(argv[argc - 1]), NULL, err);
  rl_lease *lease = rl_acquire(client, "docs", 4, 0, NULL, err);
  rl_status status = rl_error_status(err);
  struct work work = {3};
  (void)next_step, (void)write_result, (void)work;
%s
  rl_lease_free(lease);
  rl_client_close(client);
  rl_error_free(err);
  return status == RL_OK ? 0 : 1;
}
"""

PROGRAM_WITH_CLIENT = """
#include <redlatch/redlatch.h>
#include <stdio.h>
#include <string.h>

static int has_worked;
static void work(int64_t fence) { has_worked = fence > 0; }

int main(void) {
%s
  return has_worked ? 0 : 1;
}
"""

CPP_PROGRAM = """
#include <redlatch/redlatch.hpp>

using namespace std::chrono_literals;

static bool has_worked;
static void work(int64_t fence) { has_worked = fence > 0; }

int main() {
%s
  return has_worked ? 0 : 1;
}
"""

GO_MODULE = f"""module docs

go 1.21

require redlatch.io/redlatch v0.0.0

replace redlatch.io/redlatch => {ROOT / "go"}
"""
GO_PROGRAM = """package main

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"os/signal"
	"syscall"
	"time"

	"redlatch.io/redlatch"
)

var _, _, _, _ = redlatch.Dial, slog.Default, time.Second, errors.Join
var _, _ = signal.Stop, syscall.SIGTERM

func work(ctx context.Context, fence int64) error { return ctx.Err() }

func piece(ctx context.Context, %s *redlatch.Client) error {
%s
	return nil
}

func main() {
	ctx := context.Background()
	client, err := redlatch.Dial(ctx, "redis://localhost:6379")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if err := piece(ctx, client); err != nil {
		log.Fatal(err)
	}
}
"""


JAVA_PROGRAM = """
import static java.nio.charset.StandardCharsets.UTF_8;

import io.redlatch.*;
import java.time.Duration;
import java.util.concurrent.locks.Lock;

class Docs {
  static final class Worker {
    void start(long fence) {}

    void stop() {}

    void write(long fence) {
      if (fence <= 0) throw new AssertionError();
    }
  }

  public static void main(String[] arguments) throws Exception {
    Worker worker = new Worker();
    try (Redlatch client = Redlatch.connect("redis://localhost:6379")) {
      piece(client, worker);
    }
  }

  private static void piece(Redlatch %s, Worker worker) throws Exception {
%s
  }
}
"""


def blocks_of_docs() -> Iterator[object]:
    for page in pages_with_code():
        if page in (RECIPES, FENCED_WRITES):
            continue
        for number, found in enumerate(_BLOCK.finditer(page.read_text())):
            if found[1] != "sh" and not file_of(found[2]):
                yield pytest.param(found[1], found[2], id=f"{page.stem}-{number}-{found[1]}")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(available_kinds()[0]) as running:
        yield running


def run(command: list[str], folder: Path) -> None:
    done = run_to_end(command, folder, joins=True)
    assert done.returncode == 0, done.stdout


def run_python(body: str, server: Server, folder: Path) -> None:
    if "Redlock(" in body:
        with ExitStack() as nodes:
            for name in NODES_OF_DOCS:
                node = nodes.enter_context(Server(available_kinds()[0]))
                body = body.replace(f"//{name}", f"//127.0.0.1:{node.port}")
            return run_program(WITHOUT_GUARD + body, server, folder)
    run_program(body, server, folder)


def run_program(body: str, server: Server, folder: Path) -> None:
    program = folder / "test_docs.py"
    program.write_text(body.replace(SERVER_OF_DOCS, f"127.0.0.1:{server.port}"))
    if "signal.SIGTERM" in body:
        return run_until_sigterm([sys.executable, "-u", program.name], folder)
    as_tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--redlatch-url={server.url}"]
    run([sys.executable, *(as_tests if "def test_" in body else []), program.name], folder)


def run_until_sigterm(command: list[str], folder: Path) -> None:
    """A program that works until it is asked to end."""
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout and running.stdout.readline() != ""
        running.terminate()
        assert running.wait(LIMIT) == 0


def run_c(body: str, server: Server, folder: Path) -> None:
    # Some pieces make a client of their own.
    program = (PROGRAM_WITH_CLIENT if "rl_client_open" in body else PROGRAM) % body
    program = program.replace(SERVER_OF_DOCS, f"127.0.0.1:{server.port}")
    (folder / "docs.c").write_text(program)
    command = [*shlex.split(os.environ.get("CC", "cc")), "-std=c11", "docs.c"]
    run_linked(command, server, folder)


def run_cpp(body: str, server: Server, folder: Path) -> None:
    program = (CPP_PROGRAM % body).replace(SERVER_OF_DOCS, f"127.0.0.1:{server.port}")
    (folder / "docs.cc").write_text(program)
    command = [*shlex.split(os.environ.get("CXX", "c++")), "-std=c++17", "docs.cc"]
    run_linked(command, server, folder)


def run_linked(compile_it: list[str], server: Server, folder: Path) -> None:
    library = build_folder() / "capi"
    command = [*compile_it, "-Wall", "-Werror", "-Wno-unused-variable", "-o", "docs"]
    command += [f"-I{ROOT / 'capi/include'}"]
    command += [f"-L{library}", "-lredlatch", f"-Wl,-rpath,{library}"]
    run(command, folder)
    run(["./docs", server.url], folder)


def run_go(body: str, server: Server, folder: Path) -> None:
    (folder / "go.mod").write_text(GO_MODULE)
    # Some pieces make a client of their own.
    name = "given" if "client, err :=" in body else "client"
    program = (GO_PROGRAM % (name, body)).replace(SERVER_OF_DOCS, f"127.0.0.1:{server.port}")
    (folder / "main.go").write_text(program)
    run([str(go_build(folder, folder / "docs"))], folder)


def run_java(body: str, server: Server, folder: Path) -> None:
    # Some pieces make a client of their own.
    name = "given" if "Redlatch client" in body else "client"
    program = JAVA_PROGRAM % (name, body)
    program = program.replace(SERVER_OF_DOCS, f"127.0.0.1:{server.port}")
    (folder / "Docs.java").write_text(program)
    run(java_program("Docs", folder), folder)


@pytest.mark.parametrize(("language", "body"), list(blocks_of_docs()))
def test_block_runs(language: str, body: str, server: Server, tmp_path: Path) -> None:
    runners = {"python": run_python, "c": run_c, "cpp": run_cpp, "go": run_go, "java": run_java}
    assert language in runners, "a block of code says its language, and there is a way to run it"
    runners[language](body, server, tmp_path)

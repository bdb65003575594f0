# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: one row in options.def and one use of its field make an option of every language and of
the command.

Method: a copy of the sources gets a row, `greeting`, and a use: an acquire with a greeting fails,
and its message has the greeting; with it a row whose duration may be off, and one whose default is
not the first word. A row for clients, `motto`, has a use as well: a client with a motto does not
open. All is generated and built, and both options are set in C, C++, Python, Go, Java and the
command. Nothing else is changed. The copy stays, so that the next run compiles little. This takes
minutes: it belongs to the long runs (scripts/test --all). tests/abi/test_options.py generates the
same in each run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.build import ROOT, alone
from support.go import PINNED, find_go
from support.java import find_jdk
from support.program import run_to_end

PLACE = ROOT / "build/one-row"
TREE, BUILD = PLACE / "tree", PLACE / "build"
BUILD_S = 1500

ROW = (
    'RL_ACQUIRE_OPTION(greeting, greeting, TEXT, 0, 11, "", "", "0.1", "a word of a test")\n'
    'RL_ACQUIRE_OPTION(pause, pause, DURATION, 5, 50, 7, "off", "0.1", "a pause of a test")\n'
    'RL_ACQUIRE_OPTION(mood, mood, CHOICE, 0, 2, 1, "calm glad wild", "0.1", "a mood of a test")\n'
)
BEFORE_ROW = "RL_LOCK_OPTION(confirm,"
CLIENT_ROW = (
    'RL_CLIENT_OPTION(motto, motto, TEXT, 0, 11, "", "", "0.1", "a motto of a test")\n'
)
BEFORE_CLIENT_ROW = "RL_TLS_OPTION(tls_ca,"
USE = """\
  if (!request.options.greeting.empty()) {
    return failure(Status::kInvalid, "greeted by " + request.options.greeting + " after " +
                                         std::to_string(request.options.pause / kMs));
  }
"""
BEFORE_USE = "  return config::choose_format(request.options, request.options.format);\n"
GREETED = "greeted by "
CLIENT_USE = """\
    if (!nodes.empty() && !nodes.front().motto.empty()) {
      answer(err, failure(Status::kInvalid, "opened with " + nodes.front().motto));
      return nullptr;
    }
"""
BEFORE_CLIENT_USE = "    auto client = std::make_unique<rl_client>();\n"
OPENED = "opened with "


def copy_sources() -> None:
    """What git knows; a file that is the same keeps its time."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    changed = {
        "core/config/options.def": (
            (BEFORE_ROW, ROW + BEFORE_ROW),
            (BEFORE_CLIENT_ROW, CLIENT_ROW + BEFORE_CLIENT_ROW),
        ),
        "capi/src/arguments.cc": ((BEFORE_USE, USE + BEFORE_USE),),
        "capi/src/client.cc": ((BEFORE_CLIENT_USE, CLIENT_USE + BEFORE_CLIENT_USE),),
    }
    for name in listed:
        source, target = ROOT / name, TREE / name
        if not source.is_file():
            continue
        content = source.read_bytes()
        for old, new in changed.get(name, ()):
            assert content.count(old.encode()) == 1, (name, old)
            content = content.replace(old.encode(), new.encode())
        if not target.exists() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            shutil.copymode(source, target)
    if not (TREE / ".deps").exists():
        (TREE / ".deps").symlink_to(ROOT / ".deps")


def run(*command: object, folder: Path = TREE, **environment: str) -> str:
    done = run_to_end(command, folder, env={**os.environ, **environment}, limit=BUILD_S)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-4000:]
    return said


@pytest.fixture(scope="module")
def built() -> Iterator[Path]:
    with alone("one-row"):
        copy_sources()
        run(sys.executable, "tools/gen_options.py")
        pybind11 = run(sys.executable, "-m", "pybind11", "--cmakedir").strip()
        run(
            *("cmake", "-S", TREE, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None"),
            *("-DREDLATCH_BUILD_PYTHON=ON", "-DREDLATCH_BUILD_JAVA=ON"),
            *(f"-Dpybind11_DIR={pybind11}", f"-DPython_EXECUTABLE={sys.executable}"),
            CCACHE_BASEDIR=str(PLACE),
        )
        run("cmake", "--build", BUILD, "-j2", CCACHE_BASEDIR=str(PLACE), CCACHE_NOHASHDIR="1")
        run("cmake", "--install", BUILD, "--prefix", PLACE / "prefix")
        yield BUILD


def compiled(compiler: str, name: str, code: str, *options: str) -> str:
    source = PLACE / name
    source.write_text(code)
    run(
        *(compiler, *options, source, "-o", source.with_suffix("")),
        *(f"-I{TREE}/capi/include", f"-L{BUILD}/capi", f"-Wl,-rpath,{BUILD}/capi", "-lredlatch"),
    )
    return run(source.with_suffix(""))


def test_c(built: Path) -> None:
    code = """
      #include <redlatch/redlatch.h>
      #include <stdio.h>
      int main(void) {
        rl_error *err = rl_error_new();
        rl_client *client = rl_client_open("unix:///nowhere", 15, NULL, err);
        rl_acquire_options *options = rl_acquire_options_new();
        rl_acquire_options_set(options, "greeting", 8, "C", 1, err);
        rl_acquire_options_set(options, "pause", 5, "off", 3, err);
        rl_acquire(client, "x", 1, 0, options, err);
        puts(rl_error_message(err));
        rl_acquire_options_set(options, "greeting", 8, "twelve bytes", 12, err);
        puts(rl_error_message(err));
        rl_client_options *chosen = rl_client_options_new();
        rl_client_options_set(chosen, "motto", 5, "C", 1, err);
        rl_client_open("unix:///nowhere", 15, chosen, err);
        puts(rl_error_message(err));
        rl_client_options_set(chosen, "motto", 5, "twelve bytes", 12, err);
        puts(rl_error_message(err));
        return 0;
      }
    """
    said = compiled("cc", "one_row.c", code)
    assert GREETED + "C after 0" in said
    assert "option 'greeting' must be at most 11 bytes (got 12 bytes)" in said
    assert OPENED + "C\n" in said
    assert "option 'motto' must be at most 11 bytes (got 12 bytes)" in said


def test_cpp(built: Path) -> None:
    code = """
      #include <redlatch/redlatch.hpp>
      #include <cstdio>
      int main() {
        auto client = redlatch::client::open("unix:///nowhere");
        try {
          (void)client.try_acquire("x", redlatch::acquire_options()
              .greeting("C++").pause(std::chrono::milliseconds(0)));
        } catch (const redlatch::error& error) {
          std::puts(error.what());
        }
        try {
          (void)redlatch::client::open("unix:///nowhere",
              redlatch::client_options().set("motto", "C++"));
        } catch (const redlatch::error& error) {
          std::puts(error.what());
        }
      }
    """
    said = compiled("c++", "one_row.cc", code, "-std=c++17")
    assert GREETED + "C++ after 0" in said
    assert OPENED + "C++" in said


def test_python(built: Path) -> None:
    package = PLACE / "python/redlatch"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(TREE / "python/src/redlatch", package)
    for module in (BUILD / "bindings/python").glob("_core*.so"):
        shutil.copy(module, package)
    code = (
        "import redlatch\n"
        "client = redlatch.connect('unix:///nowhere', wait=None)\n"
        "assert 'a word of a test' in redlatch.Client.lock.__doc__\n"
        "try: client.acquire('x', timeout=0, greeting='Python', pause=0)\n"
        "except redlatch.Invalid as error: print(error)\n"
        "assert 'a motto of a test' in redlatch.connect.__doc__\n"
        "try: redlatch.connect('unix:///nowhere', wait=None, motto='Python')\n"
        "except redlatch.Invalid as error: print(error)\n"
    )
    said = run(sys.executable, "-S", "-c", code, PYTHONPATH=str(PLACE / "python"))
    assert GREETED + "Python after 0" in said
    assert OPENED + "Python" in said


def test_go(built: Path) -> None:
    go = find_go()
    if go is None:
        pytest.skip("needs Go 1.21 or later")
    code = """
      package redlatch_test
      import ("context"; "fmt"; "testing"; "redlatch.io/redlatch")
      func TestOneRow(t *testing.T) {
        client, err := redlatch.Open("unix:///nowhere")
        if err != nil { t.Fatal(err) }
        defer client.Close()
        _, err = client.TryLock(context.Background(), "x", redlatch.Greeting("Go"),
          redlatch.Pause(0))
        fmt.Println(err)
        _, err = redlatch.Open("unix:///nowhere", redlatch.WithOption("motto", "Go"))
        fmt.Println(err)
      }
    """
    (TREE / "go/one_row_test.go").write_text(code)
    found = next((PLACE / "prefix").glob("lib*/**/redlatch.pc"))
    environment = {
        **PINNED,
        "CGO_LDFLAGS": f"-Wl,-rpath,{found.parents[1]}",
        "PKG_CONFIG_PATH": str(found.parent),
    }
    command = (go, "test", "-count=1", "-run=TestOneRow", "-v", ".")
    said = run(*command, folder=TREE / "go", **environment)
    assert GREETED + "Go after 0" in said
    assert OPENED + "Go" in said


def test_java(built: Path) -> None:
    jdk = find_jdk()
    if jdk is None:
        pytest.skip("needs a JDK")
    code = """
      import io.redlatch.*;
      class OneRow {
        public static void main(String[] words) {
          NamedLock lock = Redlatch.open("unix:///nowhere").lock("x");
          try {
            lock.with(LockOptions.DEFAULT.greeting("Java")
                .pause(java.time.Duration.ZERO)).tryAcquire();
          } catch (RedlatchException failure) {
            System.out.println(failure.getMessage());
          }
          try {
            Redlatch.open("unix:///nowhere", ClientOptions.DEFAULT.with("motto", "Java"));
          } catch (RedlatchException failure) {
            System.out.println(failure.getMessage());
          }
        }
      }
    """
    (PLACE / "OneRow.java").write_text(code)
    sources = [*TREE.glob("java/redlatch/src/main/java/**/*.java")]
    sources += [*TREE.glob("tests/support/jspecify/**/*.java"), PLACE / "OneRow.java"]
    names = [path for path in sources if path.name != "module-info.java"]
    run(jdk / "bin/javac", "-nowarn", "-proc:none", "-d", PLACE / "classes", *names)
    library = f"-Dio.redlatch.library={BUILD}/java/libredlatchjni.so"
    said = run(jdk / "bin/java", library, "-cp", PLACE / "classes", "OneRow")
    assert GREETED + "Java after 0" in said
    assert OPENED + "Java" in said


def test_command(built: Path) -> None:
    command = [str(BUILD / "cli/redlatch"), "-u", "unix:///nowhere", "run", "-n"]
    done = run_to_end([*command, "--greeting", "command", "--pause", "off", "x", "true"])
    assert GREETED + "command after 0" in done.stderr
    said = " ".join(run(BUILD / "cli/redlatch", "help", "run").split())
    assert "A mood of a test: calm, glad or wild (glad)" in said
    opened = run_to_end(
        [str(BUILD / "cli/redlatch"), "-u", "unix:///nowhere", "--motto", "command", "status", "x"]
    )
    assert OPENED + "command" in opened.stderr
    refused = run_to_end([*command, "--greeting", "twelve bytes", "x", "true"])
    assert refused.returncode == 64
    assert "--greeting must be at most 11 bytes (got 12 bytes)" in refused.stderr


def test_documentation_has_it(built: Path) -> None:
    assert "| `greeting` | at most 11 bytes |" in (TREE / "docs/options.md").read_text()
    assert "| `motto` | at most 11 bytes |" in (TREE / "docs/options.md").read_text()
    header = (TREE / "capi/include/redlatch/redlatch.h").read_text()
    assert " *   greeting " in header and " *   motto " in header

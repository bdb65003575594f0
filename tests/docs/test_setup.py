# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: what a new user types first works, and says what it lacks and how far it is.

Method: scripts/env in each shell, from several folders; the lines that scripts/demo ends with;
scripts/setup in a tree and on a PATH of the test's own, where things only pretend.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import IO

import pytest
from support.build import ROOT, alone
from support.program import is_alive
from support.wait import wait_until

from .machine import LIMIT, path_without, put, run

RELEASE = ROOT / "build/release"  # What scripts/setup installs.
SHELLS = ("bash", "dash", "zsh")
ALL_STEPS = re.findall(
    r"^(?:computing|pytest)_steps=\((.*?)\)", (ROOT / "scripts/test").read_text(), re.M | re.S
)


# ---- scripts/env ---------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("folder", "line"),
    [
        (ROOT, ". scripts/env"),
        (ROOT / "docs", ". ../scripts/env"),
        (Path("/"), f". '{ROOT}/scripts/env'"),
        (Path("/"), f"set -eu; . '{ROOT}/scripts/env'; . '{ROOT}/scripts/env'"),
        (Path("/"), f"f() {{ . '{ROOT}/scripts/env'; }}; f"),
    ],
)
def test_env_puts_command_and_package_into_a_shell(shell: str, folder: Path, line: str) -> None:
    words = "command -v redlatch; python3 -c 'import redlatch'; echo $PATH"
    left_behind = "(set) | grep -c '^redlatch_'"
    done = run(shell, "-c", f"{line}; {words}; {left_behind}", folder=folder)
    command, path, left = done.stdout.splitlines()
    ours = f"{ROOT}/.venv/bin"
    assert command == f"{ours}/redlatch" and path.split(":").count(ours) == 1
    assert left == "0"
    # A subshell is another process, whose files are others.
    done = run(shell, "-c", f"({line}; command -v redlatch)", folder=folder)
    assert done.stdout == f"{command}\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_env_says_what_is_missing(shell: str, tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    for name in ("env", "setup"):
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts")
    done = run(shell, "-c", f". '{tmp_path}/scripts/env'; echo $?", folder=Path("/"))
    assert f"run {tmp_path}/scripts/setup first\n1\n" in done.stdout
    done = run(ROOT / "scripts/env", folder=tmp_path)
    assert done.returncode == 2 and "say `. " in done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_env_takes_the_command_where_it_alone_is_built(shell: str, tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "build/release/cli").mkdir(parents=True)
    for name in ("env", "setup"):
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts")
    put(tmp_path / "build/release/cli", "redlatch")
    line = f"set -eu; . '{tmp_path}/scripts/env'; command -v redlatch; echo ${{VIRTUAL_ENV:-no}}"
    done = run(shell, "-c", line, folder=Path("/"))
    assert done.stdout == f"{tmp_path}/build/release/cli/redlatch\nno\n"


@pytest.mark.parametrize("folder", [ROOT, ROOT / "docs"], ids=["checkout", "elsewhere"])
def test_next_steps_of_the_demo_work(folder: Path) -> None:
    demo = os.path.relpath(ROOT / "scripts/demo", folder)
    done = run(demo, folder=folder)
    assert done.returncode == 0, done.stdout
    assert "setup: this takes about" in done.stdout
    said = done.stdout[done.stdout.index("Next, in this shell:") :]
    lines = re.findall(r"^  (.*)$", said, re.MULTILINE)
    assert len(lines) == 3
    for shell in SHELLS:
        typed = run(shell, "-c", "set -eu\n" + "\n".join(lines), folder=folder)
        assert typed.returncode == 0, typed.stdout
        assert "ours, fence " in typed.stdout and "Lease 'report' held" in typed.stdout


# ---- scripts/setup -------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What scripts/setup reads, without the sources; hiredis is there."""
    top = tmp_path / "tree"
    scripts = ("setup", "demo", "package")
    files = ("tools/uninstall.cmake", "python/requirements.txt", "VERSION")
    for name in (*(f"scripts/{script}" for script in scripts), *files):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, top / name)
    for file in (ROOT / "tests").glob("requirements*.txt"):
        (top / "tests").mkdir(exist_ok=True)
        shutil.copy(file, top / "tests")
    for name in ("get_hiredis.sh", "get_servers.sh"):
        put(top / "tools", name)
    for name in ("core", "capi", "embedded", "cli", "bindings/python", "python/src"):
        (top / name).mkdir(parents=True)
    for name in ("CMakeLists.txt", "CMakePresets.json", "pyproject.toml"):
        (top / name).touch()
    return top


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A PATH on which all packages of the system are there, and no Java, Go or Node; not root's."""
    absent = ("java.*", "mvn", "go", "gofmt", "node.*", "npm", "apt-get")
    path = path_without(tmp_path / "bin", *absent)
    put(path, "id", "echo 1000")
    put(path, "sudo", "exit 1")
    put(path, "dpkg-query", 'for one in "$@"; do echo "installed $one"; done')
    return path


def test_each_step_gets_only_what_it_needs(tree: Path, machine: Path) -> None:
    done = run("scripts/setup", "--for", "unit", "--for", "asan", folder=tree, path=machine)
    assert done.returncode == 0, done.stdout
    for word in ("Go", "jdk", "Python", ".venv", "build/release"):
        assert word not in done.stdout
    assert not (tree / ".venv").exists()
    put(machine, "dpkg-query", "exit 1")
    assert len(ALL_STEPS) == 2
    for step in " ".join(ALL_STEPS).split():
        done = run("scripts/setup", "--for", step, folder=tree, path=machine)
        assert done.returncode == 1 and "only root may install them" in done.stdout
        listed = done.stdout.splitlines()[-1].split()
        assert ("libgtest-dev" in listed) == (step not in ("tidy", "model", "tsan"))
        assert ("python3-venv" in listed) == (step not in ("tidy", "unit", "asan", "tsan"))
        assert ("spin" in listed) == (step == "model")
        assert ("postgresql" in listed) == (step == "docs")
    done = run("scripts/setup", "--for", "nothing", folder=tree, path=machine)
    assert done.returncode == 2 and "usage: " in done.stdout


def test_without_apt_the_commands_that_are_missing_are_listed(tree: Path, tmp_path: Path) -> None:
    absent = ("initdb", "postgres", "psql")
    path = path_without(tmp_path / "bin", "dpkg.*", "apt.*", *absent)
    done = run("scripts/setup", "--for", "docs", folder=tree, path=path)
    assert done.returncode == 1 and "this system has no apt; please install:" in done.stdout
    for name in absent:
        assert f"\n  {name} (command)\n" in done.stdout


# What a Debian without anything lacks for each kind of package, and for its trial.
PACKAGES_OF = {
    "source": "cmake dpkg-dev",
    "go": "cmake dpkg-dev",
    "python": "cmake dpkg-dev python3-venv libcli11-dev python3-dev",
    "java": "cmake dpkg-dev python3-venv libcli11-dev",
    "static": "cmake dpkg-dev python3-venv libcli11-dev",
    "deb": "cmake dpkg-dev python3-venv libcli11-dev python3-dev build-essential debhelper "
    "dh-python ninja-build pkg-config",
}
TRIALS_OF = dict.fromkeys(PACKAGES_OF, "debootstrap redis-server")
TRIALS_OF["python"] += " qemu-user-static"
TRIALS_OF["static"] += " qemu-user-static skopeo umoci"


@pytest.mark.parametrize("kind", PACKAGES_OF)
def test_a_kind_of_package_gets_only_what_it_needs(kind: str, tree: Path, machine: Path) -> None:
    put(machine, "dpkg-query", "exit 1")
    assert f"({' '.join(PACKAGES_OF)})" in (tree / "scripts/package").read_text()
    for words, more in (("--packages",), ""), (("--packages", "--try"), TRIALS_OF[kind]):
        done = run("scripts/setup", *words, "--for", kind, folder=tree, path=machine)
        assert done.returncode == 1 and "only root may install them" in done.stdout
        listed = done.stdout.splitlines()[-1].split()[3:]
        assert sorted(listed) == sorted(["python3", *PACKAGES_OF[kind].split(), *more.split()])
    put(machine, "dpkg-query", 'for one in "$@"; do echo "installed $one"; done')
    done = run("scripts/setup", "--packages", "--for", kind, folder=tree, path=machine)
    assert done.returncode == (kind == "java"), done.stdout
    assert ("no default-jdk-headless maven" in done.stdout) == (kind == "java")
    assert not (tree / ".venv").exists() and not (tree / "build/release").exists()


def test_a_package_gets_what_it_needs_by_itself(tree: Path, machine: Path) -> None:
    put(tree / "tools", "package.py", 'echo "made: $*"')
    put(machine, "dpkg-query", "exit 1")
    done = run("scripts/package", "deb", "go", folder=tree, path=machine)
    assert done.returncode == 0 and "made: deb go" in done.stdout, done.stdout
    assert " debhelper " in done.stdout and "redis-server" not in done.stdout
    assert "takes about" not in done.stdout  # It does not start.
    put(machine, "dpkg-query", 'for one in "$@"; do echo "installed $one"; done')
    done = run("scripts/package", "deb", folder=tree, path=machine)
    # The packages themselves take longer.
    assert "setup: getting what the packages need takes about" in done.stdout


def test_the_command_is_built_alone(tree: Path, machine: Path) -> None:
    pretend_to_build(machine)
    done = run("../tree/scripts/setup", "--command", folder=tree, path=machine)
    assert done.returncode == 0, done.stdout
    assert "building build/release" in done.stdout and "Python" not in done.stdout
    assert not (tree / ".venv").exists()
    last = done.stdout.splitlines()[-2:]
    assert "`. ../tree/scripts/env` puts `redlatch` into this shell" in last[0]
    assert "`../tree/scripts/demo --command` shows it" in last[1]
    put(machine, "dpkg-query", "exit 1")
    done = run("scripts/setup", "--command", folder=tree, path=machine)
    assert "redis-server" in done.stdout and "python3-dev" not in done.stdout
    assert "python3-venv" not in done.stdout
    put(machine, "dpkg-query", 'for one in "$@"; do echo "installed $one"; done')
    (tree / "examples/demo").mkdir(parents=True)
    put(tree / "examples/demo", "demo.sh", "echo shown")
    done = run("scripts/demo", "--command", folder=tree, path=machine)
    assert done.returncode == 0 and "shown\n" in done.stdout, done.stdout
    assert "python3 -c" not in done.stdout and "setup: next" not in done.stdout
    done = run("scripts/demo", "--go", folder=tree, path=machine)
    assert (done.returncode, done.stdout) == (2, "usage: scripts/demo [--command]\n")


def test_named_part_is_required(tree: Path, machine: Path) -> None:
    pretend_to_build(machine)
    done = run("scripts/setup", "--java", folder=tree, path=machine)
    assert done.returncode == 1
    assert "no default-jdk-headless maven, and only root may install them" in done.stdout


def pretend_to_build(machine: Path) -> None:
    counts = "for n in 1 2 3; do echo \"[$n/3] Building\"; done"
    put(machine, "cmake", "echo '[0/2] Re-checking globbed directories...'", counts)
    put(machine, "python3", "mkdir -p .venv/bin && cp ../bin/in_venv .venv/bin/python")
    put(machine, "in_venv", '[ "$1" = -c ] || echo "  [7/8] Building"')


def test_setup_says_how_long_and_how_far(tree: Path, machine: Path) -> None:
    pretend_to_build(machine)
    done = run("scripts/setup", folder=tree, path=machine)
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    time = r"\d+ (s|min with \d+ cores)"
    disk = r"fetches about \d+ MB, and needs about \d+ MB of disk"
    assert re.fullmatch(f"setup: this takes about {time}, {disk}", lines[0])
    # Where there is no terminal, one line and then one every ten seconds.
    assert "setup: building build/release: 1 of 3" in lines
    assert not any("2 of 3" in line for line in lines)
    assert "setup: building the Python package: 7 of 8" in lines
    assert "`. scripts/env` puts `redlatch` and the Python package into this shell" in lines[-2]
    assert "`scripts/demo` shows it" in lines[-1]
    # All is there now.
    done = run("scripts/setup", folder=tree, path=machine)
    assert "Python packages are there" in done.stdout and "7 of 8" not in done.stdout


# As apt does: its progress goes to a descriptor that does not wait. Scripts of packages write to
# another, and must not fail for that.
APT = """
case "$*" in
  *update*) exit ;;
  indextargets*) echo 'http://localhost/debian bookworm'; exit ;;
  *assume-no*)
    echo 'Need to get 12.3 MB/134 MB of archives.'
    echo 'After this operation, 1,234 MB of additional disk space will be used.'
    exit 1
    ;;
esac
echo pmstatus:one:25.5:Installing one >&3
exec python3 -c 'import os
os.set_blocking(3, False)
for _ in range(400):
    assert os.write(1, b"x" * 999 + b"\\n") == 1000
assert os.get_blocking(1)'
"""


def test_apt_installs_and_its_progress_is_shown(tree: Path, machine: Path) -> None:
    put(machine, "dpkg-query", "exit 1")
    put(machine, "sudo", "shift", 'exec "$@"')
    put(machine, "apt-get", APT)
    for name in ("tee", "chmod"):  # No file of the system's is to be made.
        put(machine, name, "cat >/dev/null" if name == "tee" else "")
    done = run("scripts/setup", "--for", "unit", folder=tree, path=machine)
    assert done.returncode == 0, done.stdout
    # With 10 MB for hiredis, and 1 MB of disk.
    assert ", fetches about 22 MB, and needs about 1235 MB of disk\n" in done.stdout
    assert "setup: installing python3 build-essential" in done.stdout
    assert "setup: packages: installed 25 %" in done.stdout
    put(machine, "apt-get", "case $* in *update*) exit ;; esac; echo E: no such package; exit 100")
    done = run("scripts/setup", "--for", "unit", folder=tree, path=machine)
    assert done.returncode == 1
    assert "E: no such package" in done.stdout and "apt could not install" in done.stdout


def test_the_progress_of_go_is_shown(tree: Path, machine: Path) -> None:
    put(machine, "sudo", "shift", 'exec "$@"')
    put(machine, "apt-get", APT)
    put(machine, "apt-cache")
    words = ("--packages", "--try", "--for", "go")
    done = run("scripts/setup", *words, folder=tree, path=machine)
    assert done.returncode == 0, done.stdout
    if "Go is there" not in done.stdout:  # It is also looked for beside the PATH.
        assert ", fetches about 55 MB, and needs about 240 MB of disk\n" in done.stdout
        assert "setup: Go: installed 25 %" in done.stdout
        assert "no Go >= 1.21" in done.stdout  # That was no Go.
    assert not (tree / "build/log/go-lists").exists()


def test_setup_counts_in_place_on_a_terminal(tree: Path, machine: Path) -> None:
    pretend_to_build(machine)
    here, there = pty.openpty()
    environment = {"PATH": str(machine), "HOME": str(tree)}
    done = subprocess.run(
        ["scripts/setup"], cwd=tree, env=environment, stdout=there, timeout=LIMIT, check=False
    )
    os.close(there)
    said = b""
    try:
        while data := os.read(here, 1 << 16):
            said += data
    except OSError:  # The other end is closed.
        pass
    os.close(here)
    assert done.returncode == 0
    for count in (b"1 of 3", b"2 of 3", b"3 of 3\r\x1b[K"):
        assert b"\r\x1b[Ksetup: building build/release: " + count in said


def test_steps_say_how_long_they_took(tree: Path, machine: Path) -> None:
    shutil.copy(ROOT / "scripts/test", tree / "scripts")
    put(tree / "tools", "tidy.py", "exit 0")
    put(machine, "git")
    first = run("scripts/test", "tidy", folder=tree, path=machine)
    assert first.returncode == 0, first.stdout
    assert "no estimate" in first.stdout
    assert "took" not in first.stdout.partition("== setup")[2]
    # As if that had been long ago, and slow.
    (tree / "build/test-times.txt").write_text("tidy 600\nunit 90\n")
    second = run("scripts/test", "tidy", folder=tree, path=machine)
    assert "together about 10 min" in second.stdout
    assert "== tidy (took 600 s last time)" in second.stdout
    times = dict(line.split() for line in (tree / "build/test-times.txt").read_text().splitlines())
    assert times["unit"] == "90" and int(times["tidy"]) < 600


@pytest.fixture
def steps(tree: Path, machine: Path) -> Path:
    """A tree in which scripts/test has one step to run, tidy, which the test writes."""
    shutil.copy(ROOT / "scripts/test", tree / "scripts")
    put(machine, "git")
    return tree


def test_a_second_run_in_one_checkout_is_refused(steps: Path, machine: Path) -> None:
    put(steps / "tools", "tidy.py", "exit 0")
    (steps / "build").mkdir()
    with open(steps / "build/test.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = run("scripts/test", "tidy", folder=steps, path=machine)
    assert done.returncode == 1 and "another run in this checkout" in done.stdout
    assert run("scripts/test", "tidy", folder=steps, path=machine).returncode == 0


def test_a_lane_that_was_killed_has_failed(steps: Path, machine: Path) -> None:
    to_the_lane = "p=$PPID; for i in 1 2; do p=$(ps -o ppid= -p $p); done; kill -9 $p; sleep 1"
    put(steps / "tools", "tidy.py", to_the_lane)
    done = run("scripts/test", "tidy", folder=steps, path=machine)
    assert done.returncode == 1
    assert "failed, or not run to the end: tidy" in done.stdout


def test_a_signal_ends_all_that_was_started(steps: Path, machine: Path) -> None:
    put(steps / "tools", "tidy.py", "echo $$ > step.pid; sleep 600")
    words = [str(steps / "scripts/test"), "tidy"]
    with subprocess.Popen(words, cwd=steps, env={"PATH": str(machine)}) as running:
        wait_until(lambda: (steps / "step.pid").exists() and (steps / "step.pid").read_text())
        step = int((steps / "step.pid").read_text())
        running.send_signal(signal.SIGTERM)
        assert running.wait(LIMIT) == 130
    wait_until(lambda: not is_alive(step))
    with open(steps / "build/test.lock", "w") as lock:
        wait_until(lambda: is_locked(lock))


def is_locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def test_changes_since_an_unknown_commit_need_all_steps(steps: Path, machine: Path) -> None:
    put(machine, "git", "exit 128")
    done = run("scripts/test", "--changed", folder=steps, path=machine)
    assert "all steps, because origin/main is unknown" in done.stdout
    for step in " ".join(ALL_STEPS[:1]).split():
        assert step in done.stdout


def test_a_name_with_a_space_is_no_step(steps: Path, machine: Path) -> None:
    done = run("scripts/test", "tidy model", folder=steps, path=machine)
    assert done.returncode == 2 and "no step is called 'tidy model'" in done.stdout


def test_uninstall_leaves_nothing(tmp_path: Path) -> None:
    """Of two installations, each by its own name, and of others' files none."""
    prefixes = [tmp_path / "a (b)+", tmp_path / "c"]
    with alone("install"):
        for prefix in prefixes:
            done = run("cmake", "--install", RELEASE, "--prefix", prefix, folder=tmp_path)
            assert done.returncode == 0, done.stdout
        (prefixes[0] / "bin/another").touch()
        done = run("cmake", "--build", RELEASE, "--target", "uninstall", folder=tmp_path)
        assert done.returncode == 0 and f"from {prefixes[1]}" in done.stdout, done.stdout
    assert not prefixes[1].exists() and (prefixes[0] / "bin/redlatch").exists()
    done = run(ROOT / "scripts/setup", "--uninstall", prefixes[0].name, folder=tmp_path)
    assert done.returncode == 0, done.stdout
    assert [path.name for path in prefixes[0].rglob("*")] == ["bin", "another"]

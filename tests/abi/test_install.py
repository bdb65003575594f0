# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""An installed tree, moved to another place, serves programs in each way they look for it."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from support.build import ROOT, install
from support.embedded import EmbeddedFolder
from support.program import run_to_end

from .library import is_sanitized, output_of

VERSION = (ROOT / "VERSION").read_text().strip()

# Joins the embedded server of the folder it is given, and starts it: that needs the helper.
EMBEDDED_PROGRAM = """\
#include <redlatch/redlatch.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
  rl_error *err = rl_error_new();
  rl_client *client = rl_client_open(argv[1], strlen(argv[1]), NULL, err);
  rl_lease *lease = client ? rl_acquire(client, "a", 1, 20000, NULL, err) : NULL;
  int result = lease != NULL && rl_release(lease, err) == RL_OK ? 0 : 1;
  printf("%s\\n", rl_error_message(err));
  rl_lease_free(lease);
  rl_client_close(client);
  rl_error_free(err);
  return argc == 2 ? result : 1;
}
"""

C_PROGRAM = """\
#include <redlatch/redlatch.h>
#include <stdio.h>
int main(void) {
  rl_error *err = rl_error_new();
  rl_client *client = rl_client_open("redis://127.0.0.1:1", 19, NULL, err);
  int is_good = client != NULL && rl_client_connect(client, 0, err) == RL_E_UNAVAILABLE;
  rl_client_close(client);
  rl_error_free(err);
  return is_good && printf("%s\\n", rl_version()) > 0 ? 0 : 1;
}
"""

CXX_PROGRAM = """\
#include <iostream>
#include <redlatch/redlatch.hpp>
int main() {
  auto client = redlatch::client::open("redis://127.0.0.1:1");
  try {
    client.connect();
  } catch (const redlatch::error& error) {
    if (error.status() == RL_E_UNAVAILABLE) std::cout << rl_version() << std::endl;
  }
}
"""

CMAKE_LISTS = """\
cmake_minimum_required(VERSION 3.23)
project(user LANGUAGES C CXX)
find_package(redlatch 0.1 REQUIRED)
add_executable(shared main.c)
target_link_libraries(shared PRIVATE redlatch::redlatch)
add_executable(cxx main.cc)
target_compile_features(cxx PRIVATE cxx_std_17)
target_link_libraries(cxx PRIVATE redlatch::redlatch)
add_executable(static main.c)
target_link_libraries(static PRIVATE redlatch::static)
"""


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if is_sanitized():
        pytest.skip("an installed tree: needs a build without sanitizer")
    folder = tmp_path_factory.mktemp("install")
    install(folder / "first")
    # Package files that hold the path of the first place would be found out here.
    shutil.move(folder / "first", folder / "moved")
    return folder / "moved"


@pytest.fixture(scope="module")
def library_folder(prefix: Path) -> Path:
    found = list(prefix.glob("lib*/**/libredlatch.so"))
    assert len(found) == 1
    return found[0].parent


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    (tmp_path / "main.c").write_text(C_PROGRAM)
    (tmp_path / "main.cc").write_text(CXX_PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(CMAKE_LISTS)
    return tmp_path


def pkg_config(library_folder: Path, *arguments: str) -> list[str]:
    environment = {**os.environ, "PKG_CONFIG_PATH": str(library_folder / "pkgconfig")}
    command = ["pkg-config", *arguments, "redlatch"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.split()


def run(program: Path, library_folder: Path | None = None) -> str:
    environment = dict(os.environ)
    if library_folder is not None:
        environment["LD_LIBRARY_PATH"] = str(library_folder)
    done = subprocess.run([program], env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_pkg_config_knows_the_version(library_folder: Path) -> None:
    assert pkg_config(library_folder, "--modversion") == [VERSION]


def test_pkg_config_shared(sources: Path, library_folder: Path) -> None:
    flags = pkg_config(library_folder, "--cflags", "--libs")
    output_of("cc", "-o", sources / "shared", sources / "main.c", *flags)
    assert run(sources / "shared", library_folder) == VERSION
    output_of("c++", "-std=c++17", "-o", sources / "cxx", sources / "main.cc", *flags)
    assert run(sources / "cxx", library_folder) == VERSION


def test_pkg_config_static(sources: Path, library_folder: Path) -> None:
    flags = pkg_config(library_folder, "--static", "--cflags", "--libs")
    # The archive in the place of the shared library, with all that it needs.
    archive = str(library_folder / "libredlatch.a")
    flags = [archive if flag == "-lredlatch" else flag for flag in flags]
    assert archive in flags
    output_of("cc", "-o", sources / "static", sources / "main.c", *flags)
    assert "libredlatch" not in output_of("readelf", "-d", sources / "static")
    assert run(sources / "static") == VERSION


def test_find_package(sources: Path, prefix: Path, library_folder: Path) -> None:
    build = sources / "build"
    output_of("cmake", "-S", sources, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
    output_of("cmake", "--build", build)
    assert run(build / "shared", library_folder) == VERSION
    assert run(build / "cxx", library_folder) == VERSION
    assert "libredlatch" not in output_of("readelf", "-d", build / "static")
    assert run(build / "static") == VERSION


HELPER = "libexec/redlatch/redlatch-embedded"


def use_embedded(program: Path, **environment: str) -> str:
    """What the program says after it used an embedded server: nothing, if all went well."""
    with closing(EmbeddedFolder()) as folder:
        done = run_to_end([program, folder.url], env={**os.environ, **environment})
        if done.returncode == 0:
            assert len(folder.supervisors) == 1
        return done.stdout.strip()


def test_the_helper_is_found_from_the_library(
    sources: Path, prefix: Path, library_folder: Path
) -> None:
    """Goal: a program anywhere finds the helper of the library that it loads, as that was moved;
    and says where it looked when there is none."""
    (sources / "main.c").write_text(EMBEDDED_PROGRAM)
    flags = pkg_config(library_folder, "--cflags", "--libs")
    output_of("cc", "-o", sources / "shared", sources / "main.c", *flags)
    assert use_embedded(sources / "shared", LD_LIBRARY_PATH=str(library_folder)) == ""
    away = (prefix / HELPER).with_name("away")
    (prefix / HELPER).rename(away)
    try:
        said = use_embedded(sources / "shared", LD_LIBRARY_PATH=str(library_folder))
        assert "redlatch-embedded" in said and str(library_folder) in said
        assert "the Debian package redlatch" in said
        # Beside the library, as in a Python package.
        shutil.copy(away, library_folder / "redlatch-embedded")
        assert use_embedded(sources / "shared", LD_LIBRARY_PATH=str(library_folder)) == ""
        # Everybody may write to it: it could be anybody's.
        (library_folder / "redlatch-embedded").chmod(0o777)
        said = use_embedded(sources / "shared", LD_LIBRARY_PATH=str(library_folder))
        assert "redlatch-embedded" in said
    finally:
        (library_folder / "redlatch-embedded").unlink(missing_ok=True)
        away.rename(prefix / HELPER)


def test_the_helper_is_found_from_a_static_program(
    sources: Path, prefix: Path, library_folder: Path
) -> None:
    (sources / "main.c").write_text(EMBEDDED_PROGRAM)
    flags = pkg_config(library_folder, "--static", "--cflags", "--libs")
    flags = [str(library_folder / "libredlatch.a") if f == "-lredlatch" else f for f in flags]
    output_of("cc", "-o", prefix / "bin/static", sources / "main.c", *flags)
    assert use_embedded(prefix / "bin/static") == ""
    (prefix / "bin/static").unlink()


def test_the_installed_command_runs_an_embedded_server(prefix: Path) -> None:
    with closing(EmbeddedFolder()) as folder:
        command = [prefix / "bin/redlatch", "-u", folder.url, "run", "a", "--", "echo", "ours"]
        assert output_of(*command) == "ours\n"


def test_headers_are_the_contract_only(prefix: Path) -> None:
    headers = sorted(str(path.relative_to(prefix)) for path in prefix.rglob("include/**/*.h*"))
    names = ["error.hpp", "jobs.hpp", "mutex.hpp", "options.hpp", "redlatch.h", "redlatch.hpp"]
    assert headers == [f"include/redlatch/{name}" for name in names]

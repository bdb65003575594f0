# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""An installed tree, moved to another place, serves programs in each way they look for it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.build import ROOT, build_folder

from .library import is_sanitized, output_of

VERSION = (ROOT / "VERSION").read_text().strip()

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
    command = ["cmake", "--install", str(build_folder()), "--prefix", str(folder / "first")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
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


def test_headers_are_the_contract_only(prefix: Path) -> None:
    headers = sorted(str(path.relative_to(prefix)) for path in prefix.rglob("include/**/*.h*"))
    assert headers == ["include/redlatch/redlatch.h", "include/redlatch/redlatch.hpp"]

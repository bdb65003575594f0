# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The Python package: an sdist, and a wheel for each CPython of this machine and each target.

The metadata and the sdist are those of the build backend that pyproject.toml names. The module is
compiled by Zig, because a wheel has to run where this machine's C library would be too new; for the
other targets with the headers of the same CPython, which are the same but for its configuration.
"""

from __future__ import annotations

import glob
import gzip
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import natives
from archives import write_entries
from tool_venv import tool_python

OLDEST = 9  # of CPython 3: requires-python in pyproject.toml
NEWEST = 13  # .. that has been tried
SYSTEMS = {"gnu": f"manylinux_{natives.GLIBC.replace('.', '_')}", "musl": "musllinux_1_2"}
PLATFORMS = {
    target: f"{SYSTEMS[target.split('-')[2]]}_{target.split('-')[0]}" for target in natives.TARGETS
}
# A line of pyconfig.h, and the types whose sizes it has to have, in C.
SIZE = re.compile(r"^#define SIZEOF_(\w+) (\d+)$", re.MULTILINE)
TYPES = {"VOID_P": "void *", "PID_T": "pid_t", "SIZE_T": "size_t", "WCHAR_T": "wchar_t",
         "LONG": "long", "LONG_LONG": "long long", "TIME_T": "time_t", "OFF_T": "off_t",
         "INT": "int", "SHORT": "short", "DOUBLE": "double", "PTHREAD_T": "pthread_t",
         "PTHREAD_KEY_T": "pthread_key_t", "UINTPTR_T": "uintptr_t"}
PROBE = """\
import sys, sysconfig
if sys.implementation.name == "cpython" and not hasattr(sys, "gettotalrefcount"):
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        print(sys.version_info[1], sys.version_info[0])
        print(sysconfig.get_path("include"))
        print(sysconfig.get_config_h_filename())
        print(sysconfig.get_config_var("MULTIARCH") or "")
"""
HOOKS = """\
import sys
from scikit_build_core import build
print(getattr(build, sys.argv[1])(sys.argv[2]))
"""


@dataclass(frozen=True)
class Python:
    """A CPython of this machine: its headers serve for all targets."""

    minor: int
    include: Path
    configuration: Path

    @property
    def tag(self) -> str:
        return f"cp3{self.minor}"


def candidates() -> list[str]:
    """Interpreters, by name: of PATH, of the system and of pyenv."""
    folders = [*os.environ.get("PATH", "").split(":"), "/usr/bin", "/usr/local/bin"]
    pyenv = os.environ.get("PYENV_ROOT") or str(Path.home() / ".pyenv")
    folders += sorted(glob.glob(f"{pyenv}/versions/*/bin"))
    names = [path for folder in folders for path in glob.glob(f"{folder}/python3.*")]
    # pyenv's own are scripts that stand for whichever version is chosen.
    return [name for name in names if re.search(r"/python3\.\d+$", name) and "/shims/" not in name]


def configuration_of(path: Path, multiarch: str) -> Path:
    """Debian's pyconfig.h only includes that of the machine, /usr/include/MULTIARCH/python3.N/."""
    if not multiarch or not path.is_file() or SIZE.search(path.read_text()):
        return path
    return path.parent.parent / multiarch / path.parent.name / path.name


def find_pythons() -> list[Python]:
    """One of each version, with its headers; the first of PATH wins."""
    found: dict[int, Python] = {}
    for name in candidates():
        done = subprocess.run([name, "-c", PROBE], capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        if done.returncode != 0 or len(lines) != 4:
            continue
        minor, include = int(lines[0].split()[0]), Path(lines[1])
        configuration = configuration_of(Path(lines[2]), lines[3])
        if minor >= OLDEST and (include / "Python.h").is_file() and configuration.is_file():
            found.setdefault(minor, Python(minor, include, configuration))
    pythons = [found[minor] for minor in sorted(found)]
    for python in pythons:
        sizes_of(python)  # before anything is compiled
    if not pythons:
        sys.exit(f"package_python.py: needs a CPython >= 3.{OLDEST} with its headers (python3-dev)")
    missing = sorted(set(range(OLDEST, NEWEST + 1)) - found.keys())
    if missing:
        versions = ", ".join(f"3.{minor}" for minor in missing)
        print(f"package_python.py: no wheels for CPython {versions}, which are not on this machine",
              file=sys.stderr)
    return pythons


def run_hook(root: Path, python: Path, hook: str, folder: Path, epoch: int) -> Path:
    """Call a hook of the build backend. Returns what it made in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [str(python), "-c", HOOKS, hook, str(folder)],
        cwd=root,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"package_python.py: {hook} failed:\n{done.stdout}{done.stderr}")
    return folder / done.stdout.splitlines()[-1]


def normal_tar(data: bytes, epoch: int) -> bytes:
    """The same archive, in which only names and contents are left; also of archives in it."""
    files: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as source:
        for member in source:
            stream = source.extractfile(member) if member.isfile() else None
            if stream is not None:
                content = stream.read()
                is_archive = member.name.endswith(".tar.gz")
                files[member.name] = normal_tar(content, epoch) if is_archive else content
    raw = io.BytesIO()
    write_entries(raw, files, epoch)
    return gzip.compress(raw.getvalue(), 9, mtime=epoch)


def make_sdist(root: Path, hiredis: Path, python: Path, out: Path, epoch: int) -> Path:
    """With the source of hiredis, so that it needs no network and no git."""
    kept = root / ".deps" / hiredis.name
    if not kept.is_file():
        kept.parent.mkdir(exist_ok=True)
        shutil.copyfile(hiredis, kept)
    path = run_hook(root, python, "build_sdist", out, epoch)
    path.write_bytes(normal_tar(path.read_bytes(), epoch))
    return path


def sizes_of(python: Python) -> list[tuple[str, str]]:
    """The types of C with their sizes, as its headers have them."""
    found = SIZE.findall(python.configuration.read_text())
    sizes = [(TYPES[name], size) for name, size in found if name in TYPES]
    if len(sizes) < len(TYPES) - 2:
        sys.exit(f"{python.configuration} must have the sizes of {', '.join(TYPES)} (got "
                 f"{len(sizes)} of them): install the headers of this Python again, or leave it "
                 "out of PATH")
    return sizes


def check_configuration(zig: natives.Compiler, python: Python, folder: Path) -> None:
    """The sizes of types in the headers, which are another machine's, must be those of the
    target."""
    lines = [f'_Static_assert(sizeof({name}) == {size}, "{name}");'
             for name, size in sizes_of(python)]
    source = folder / "sizes.c"
    includes = ("pthread.h", "stdint.h", "sys/types.h", "time.h", "wchar.h")
    source.write_text("\n".join([*(f"#include <{name}>" for name in includes), *lines]) + "\n")
    zig.compile(source, folder / "sizes.o")


def header_folder(python: Python, folder: Path) -> Path:
    """Its headers. Debian has pyconfig.h elsewhere, and here one that chooses among machines."""
    headers = folder / "include"
    headers.mkdir(parents=True)
    for path in python.include.iterdir():
        if path.name != "pyconfig.h":
            (headers / path.name).symlink_to(path)
    shutil.copyfile(python.configuration, headers / "pyconfig.h")
    return headers


def make_module(zig: natives.Compiler, python: Python, native: Path, folder: Path) -> Path:
    """redlatch/_core.so. The short suffix is one that every CPython takes: those of musl changed
    with versions."""
    headers = header_folder(python, folder)
    check_configuration(zig, python, folder)
    packages = zig.python.parent.parent.glob("lib/python3*/site-packages/pybind11/include")
    flags = [f"-isystem{path}" for path in (headers, *packages)]
    source = zig.root / "bindings/python/module.cc"
    compiled = zig.compile(source, folder / "module.o", f"-I{native}/include", *flags)
    names = f"-Wl,--version-script={source.with_name('module.map')}"
    zig.link(folder / "_core.so", *natives.SHARED, names, compiled, *natives.library(native))
    return folder / "_core.so"


def copy_file(source: Path, target: Path, mode: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(mode)


def lay_out(root: Path, native: Path, module: Path, metadata: Path, notices: str, tag: str,
            folder: Path) -> None:
    """What the wheel has, in the places that bindings/python/CMakeLists.txt gives it."""
    sources = root / "python/src"
    for path in sorted(sources.rglob("*")):
        if path.suffix in (".py", ".pyi", ".typed"):
            copy_file(path, folder / path.relative_to(sources), 0o644)
    copy_file(module, folder / "redlatch/_core.so", 0o755)
    supervisor = native / "libexec/redlatch/redlatch-embedded"
    data = folder / metadata.name.replace(".dist-info", ".data")
    copy_file(supervisor, folder / "redlatch/redlatch-embedded", 0o755)
    copy_file(supervisor, data / "data/libexec/redlatch/redlatch-embedded", 0o755)
    command = native / "bin/redlatch-dynamic"
    copy_file(command if command.exists() else native / "bin/redlatch",
              data / "scripts/redlatch", 0o755)
    about = folder / metadata.name
    for path in sorted(metadata.rglob("*")):
        if path.is_file() and path.name not in ("WHEEL", "RECORD"):
            copy_file(path, about / path.relative_to(metadata), 0o644)
    (about / "licenses/THIRD-PARTY-NOTICES.txt").write_text(notices)
    fields = (about / "METADATA").read_text()
    licence = "License-File: LICENSE\n"
    (about / "METADATA").write_text(
        fields.replace(licence, f"{licence}License-File: THIRD-PARTY-NOTICES.txt\n", 1))
    (about / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: tools/package_python.py\n"
                                 f"Root-Is-Purelib: false\nTag: {tag}\n")
    for path in (about / "METADATA", about / "WHEEL", about / "licenses/THIRD-PARTY-NOTICES.txt"):
        path.chmod(0o644)


def pack(python: Path, folder: Path, out: Path, epoch: int) -> None:
    command = [str(python), "-m", "wheel", "pack", str(folder), "--dest-dir", str(out)]
    done = subprocess.run(command, env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)},
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"package_python.py: the wheel cannot be packed:\n{done.stdout}{done.stderr}")


def keeps_promise(found: str, promised: str) -> bool:
    """Whether `found` names the same kind of system as `promised`, in that version or an older."""
    pattern = r"(manylinux|musllinux)_(\d+)_(\d+)_(\w+)"
    real, wanted = re.fullmatch(pattern, found), re.fullmatch(pattern, promised)
    if real is None or wanted is None or (real[1], real[4]) != (wanted[1], wanted[4]):
        return False
    return (int(real[2]), int(real[3])) <= (int(wanted[2]), int(wanted[3]))


def check_platform(python: Path, wheel: Path, platform: str) -> None:
    """auditwheel must find that it runs on all systems that its name promises."""
    done = subprocess.run([str(python), "-m", "auditwheel", "show", str(wheel)],
                          capture_output=True, text=True, check=False)
    said = " ".join(done.stdout.split())
    found = re.search(r'consistent with the following platform tag: "(\w+)"', said)
    if found is None or not keeps_promise(found[1], platform):
        sys.exit(f"{wheel.name} must run on {platform} (auditwheel: {said}{done.stderr})")


def make(root: Path, hiredis: Path, epoch: int, notices: str, out: Path) -> list[Path]:
    """The sdist and all wheels. Returns them."""
    work = root / "build/package-python"
    shutil.rmtree(work, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    tools, pythons = tool_python(root), find_pythons()
    made = [make_sdist(root, hiredis, tools, out, epoch)]
    metadata = run_hook(root, tools, "prepare_metadata_for_build_wheel", work / "about", epoch)
    for target in natives.TARGETS:
        native = natives.build(root, hiredis, target, epoch)
        zig = natives.compiler(root, target, epoch)

        def module_of(python: Python) -> Path:
            return make_module(zig, python, native, work / target / python.tag)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            modules = list(pool.map(module_of, pythons))
        for python, module in zip(pythons, modules):
            tag = f"{python.tag}-{python.tag}-{PLATFORMS[target]}"
            folder = module.parent / "wheel"
            lay_out(root, native, module, metadata, notices, tag, folder)
            pack(tools, folder, out, epoch)
            wheel = out / f"{metadata.name.removesuffix('.dist-info')}-{tag}.whl"
            check_platform(tools, wheel, PLATFORMS[target])
            made.append(wheel)
    return made

# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: wheels, sdist and image have what they promise, in the right places.

Method: the parts that pack, with files that stand in for what Zig compiles (test_compiled.py has
the real ones).
"""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tarfile
import time
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from support.build import ROOT

from .packages import natives, package_python, package_static

EPOCH = 1_700_000_000
VERSION = (ROOT / "VERSION").read_text().strip()
PYTHON = Path(sys.executable)
TAG = "cp39-cp39-manylinux_2_28_x86_64"
ELF = b"\x7fELF stands in"


@pytest.fixture(scope="module")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> Path:
    hook, folder = "prepare_metadata_for_build_wheel", tmp_path_factory.mktemp("about")
    made = package_python.run_hook(ROOT, PYTHON, hook, folder, EPOCH)
    assert isinstance(made, Path)
    return made


def make_wheel(folder: Path, metadata: Path) -> Path:
    native = folder / "native"
    for name in ("bin/redlatch", "libexec/redlatch/redlatch-embedded", "_core.so"):
        (native / name).parent.mkdir(parents=True, exist_ok=True)
        (native / name).write_bytes(ELF)
    laid_out = folder / "wheel"
    package_python.lay_out(ROOT, native, native / "_core.so", metadata, "notices", TAG, laid_out)
    package_python.pack(PYTHON, laid_out, folder, EPOCH)
    return folder / f"redlatch-{VERSION}-{TAG}.whl"


def test_a_wheel_has_the_module_the_command_and_the_supervisor(
    tmp_path: Path, metadata: Path
) -> None:
    with zipfile.ZipFile(make_wheel(tmp_path, metadata)) as wheel:
        modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in wheel.infolist()}
        # The times of the files are those of this test.
        assert {entry.date_time for entry in wheel.infolist()} == {time.gmtime(EPOCH)[:6]}
        data, about = f"redlatch-{VERSION}.data", f"redlatch-{VERSION}.dist-info"
        programs = {
            "redlatch/_core.so",
            "redlatch/redlatch-embedded",
            f"{data}/scripts/redlatch",
            f"{data}/data/libexec/redlatch/redlatch-embedded",
        }
        assert {name for name, mode in modes.items() if mode == 0o755} == programs
        ours = ROOT / "python/src"
        files = {
            path.relative_to(ours).as_posix()
            for path in ours.rglob("*")
            if path.suffix in (".py", ".pyi", ".typed")
        }
        assert files < modes.keys() and "redlatch/py.typed" in files
        assert f"Tag: {TAG}\n" in wheel.read(f"{about}/WHEEL").decode()
        fields = Parser().parsestr(wheel.read(f"{about}/METADATA").decode())
        assert (fields["Name"], fields["Version"]) == ("redlatch", VERSION)
        assert fields.get_all("License-File") == ["LICENSE", "THIRD-PARTY-NOTICES.txt"]
        for name in fields.get_all("License-File") or []:
            assert f"{about}/licenses/{name}" in modes
        required = fields.get_all("Requires-Dist") or []
        assert [line for line in required if 'extra == "embedded"' in line] != []
        assert "pytest_plugin" in wheel.read(f"{about}/entry_points.txt").decode()


def test_the_same_files_give_the_same_wheel(tmp_path: Path, metadata: Path) -> None:
    one, two = (make_wheel(tmp_path / name, metadata).read_bytes() for name in ("one", "two"))
    assert one == two


def test_a_wheel_may_run_on_more_systems_than_it_promises_and_not_on_fewer() -> None:
    promised = "manylinux_2_28_x86_64"
    for found in ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64"):
        assert package_python.keeps_promise(found, promised)
    for found in ("manylinux_2_31_x86_64", "manylinux_2_17_aarch64", "musllinux_1_1_x86_64",
                  "linux_x86_64"):
        assert not package_python.keeps_promise(found, promised)


def test_the_sdist_has_what_a_build_needs_and_no_more(tmp_path: Path) -> None:
    (archive,) = sorted((ROOT / ".deps").glob("hiredis-*.tar.gz"))[-1:]
    one, two = (
        package_python.make_sdist(ROOT, archive, PYTHON, tmp_path / name, EPOCH)
        for name in ("one", "two")
    )
    assert one.name == f"redlatch-{VERSION}.tar.gz" and one.read_bytes() == two.read_bytes()
    with tarfile.open(one) as sdist:
        names = {member.name.partition("/")[2] for member in sdist}
        assert {member.mtime for member in sdist} == {EPOCH}
    top = {"CHANGELOG.md", "CMakeLists.txt", "LICENSE", "PKG-INFO", "README.md", "SECURITY.md"}
    top |= {"VERSION", "pyproject.toml", ".deps", "bindings", "capi", "cli", "core", "embedded"}
    assert {name.split("/")[0] for name in names} == top | {"python", "tools"}
    tools = {"tools/check_build.sh", "tools/get_hiredis.sh", "tools/private_apt.sh"}
    assert {name for name in names if name.startswith("tools/")} == tools
    assert f".deps/{archive.name}" in names


def test_an_unknown_target_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"target must be one of .* \(got 'sparc-linux-gnu'\)"):
        natives.compiler(ROOT, "sparc-linux-gnu", EPOCH)


class NoCompiler:
    """Stands in for Zig: what is made is empty."""

    def __init__(self, root: Path, target: str) -> None:
        self.root, self.target = root, target

    def compile(self, source: Path, result: Path, *flags: str | Path) -> Path:
        result.touch()
        return result

    def link(self, result: Path, *arguments: str | Path) -> None:
        result.parent.mkdir(parents=True, exist_ok=True)
        result.touch()


def build_without_compiler(monkeypatch: pytest.MonkeyPatch, root: Path, build: str) -> Path:
    monkeypatch.setattr(natives, "compiler", lambda root, target, epoch: NoCompiler(root, target))
    monkeypatch.setattr(natives.amalgamate, "amalgamation", lambda *_: {})
    (root / "VERSION").write_text(VERSION)
    archive = root / "hiredis-1.2.0.tar.gz"
    made = getattr(natives, build)(root, archive, "aarch64-linux-gnu", EPOCH)
    assert isinstance(made, Path)
    return made


def test_only_what_java_needs_takes_a_jdk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without a JDK and without objcopy nothing is said where neither is of use."""
    monkeypatch.setattr(natives, "cli11_folder", lambda: Path("/usr/include/CLI"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    built = build_without_compiler(monkeypatch, tmp_path, "build")
    assert (built / "bin/redlatch").exists() and not (built / "lib").exists()
    assert capfd.readouterr() == ("", "")
    with pytest.raises(SystemExit, match="needs jni.h of a JDK"):
        build_without_compiler(monkeypatch, tmp_path, "build_jni")
    headers = (tmp_path / "include", tmp_path / "include/linux")
    monkeypatch.setattr(natives, "jni_folders", lambda: headers)
    assert build_without_compiler(monkeypatch, tmp_path, "build_jni") == (
        built / "lib/libredlatchjni.so"
    )


def read_blob(files: dict[str, bytes], descriptor: dict[str, object]) -> bytes:
    """The bytes of a descriptor, whose digest and size must be theirs."""
    kind, _, digest = str(descriptor["digest"]).partition(":")
    data = files[f"blobs/{kind}/{digest}"]
    assert hashlib.sha256(data).hexdigest() == digest and descriptor["size"] == len(data)
    return data


def test_the_image_is_a_layout_with_one_image_for_each_machine(tmp_path: Path) -> None:
    commands = {"amd64": b"\x7fELF one", "arm64": b"\x7fELF other"}
    one, two = tmp_path / "one.tar", tmp_path / "two.tar"
    for path in (one, two):
        package_static.write_image(path, commands, {"LICENSE": "text"}, VERSION, EPOCH)
    assert one.read_bytes() == two.read_bytes()
    with tarfile.open(one) as archive:
        files = {}
        for member in archive:
            stream = archive.extractfile(member)
            assert stream is not None
            files[member.name] = stream.read()
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    (whole,) = json.loads(files["index.json"])["manifests"]
    assert whole["annotations"]["org.opencontainers.image.ref.name"] == VERSION
    for image in json.loads(read_blob(files, whole))["manifests"]:
        architecture = image["platform"]["architecture"]
        manifest = json.loads(read_blob(files, image))
        configuration = json.loads(read_blob(files, manifest["config"]))
        assert configuration["architecture"] == architecture
        (layer,) = manifest["layers"]
        packed = read_blob(files, layer)
        assert packed[4:8] == bytes(4)  # gzip's own time
        with tarfile.open(fileobj=io.BytesIO(packed)) as root:
            (entrypoint,) = configuration["config"]["Entrypoint"]
            member = root.getmember(entrypoint.lstrip("/"))
            stream = root.extractfile(member)
            assert stream is not None and stream.read() == commands.pop(architecture)
            assert member.mode == 0o755
    assert commands == {}


def test_a_missing_program_of_a_trial_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools/try_packages.py", "static"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    needs = "debootstrap, unshare, chroot, redis-server, qemu-aarch64-static, skopeo, umoci"
    assert f"needs {needs}" in done.stderr


def test_debian_has_the_configuration_of_python_in_the_folder_of_the_machine(
    tmp_path: Path,
) -> None:
    general = tmp_path / "python3.11" / "pyconfig.h"
    own = tmp_path / "x86_64-linux-gnu" / "python3.11" / "pyconfig.h"
    for path in (general, own):
        path.parent.mkdir(parents=True)
    general.write_text("# include <x86_64-linux-gnu/python3.11/pyconfig.h>\n")
    own.write_text("#define SIZEOF_LONG 8\n")
    assert package_python.configuration_of(general, "x86_64-linux-gnu") == own
    assert package_python.configuration_of(general, "") == general
    # A Python that was built by hand has it in one place, also where Debian's compiler built it.
    assert package_python.configuration_of(own, "x86_64-linux-gnu") == own


def test_a_configuration_without_sizes_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "pyconfig.h"
    path.write_text("#define SIZEOF_LONG 8\n")
    with pytest.raises(SystemExit, match=r"pyconfig.h must have the sizes of .* \(got 1 of them"):
        package_python.sizes_of(package_python.Python(11, tmp_path, path))

# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Archives that depend on their contents and one time only: names are sorted, all files have the
same owner and time, and programs are those files that look like one."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

# The first time that a zip file can hold.
FIRST_ZIP_TIME = 315532800


def mode_of(data: bytes) -> int:
    return 0o755 if data.startswith((b"#!", b"\x7fELF")) else 0o644


def write_entries(file: BinaryIO, files: Mapping[str, bytes], epoch: int) -> None:
    """Write `files`, by name, as a .tar."""
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(data), epoch, mode_of(data)
            archive.addfile(entry, io.BytesIO(data))


def write_tar(path: Path, folder: str, files: Mapping[str, str], epoch: int) -> None:
    """Write `files`, by name below `folder`, as a .tar.gz."""
    raw = io.BytesIO()
    named = {f"{folder}/{name}": text.encode() for name, text in files.items()}
    write_entries(raw, named, epoch)
    with path.open("wb") as file, gzip.GzipFile("", "wb", 9, file, epoch) as packed:
        packed.write(raw.getvalue())


def write_zip(path: Path, folder: str, files: Mapping[str, str], epoch: int) -> None:
    """The same as a .zip, of which the times have no zone."""
    moment = time.gmtime(max(epoch, FIRST_ZIP_TIME))[:6]
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in sorted(files.items()):
            entry = zipfile.ZipInfo(f"{folder}/{name}", moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            entry.create_system = 3  # Unix, on every host
            archive.writestr(entry, text.encode(), compresslevel=9)


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

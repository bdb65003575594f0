# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Archives that depend on their contents and one time only: names are sorted, all files have the
same owner, mode and time."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

# The first time that a zip file can hold.
FIRST_ZIP_TIME = 315532800


def write_tar(path: Path, folder: str, files: Mapping[str, str], epoch: int) -> None:
    """Write `files`, by name below `folder`, as a .tar.gz."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, text in sorted(files.items()):
            data = text.encode()
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime, entry.mode = len(data), epoch, 0o644
            archive.addfile(entry, io.BytesIO(data))
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

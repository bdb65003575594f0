# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The command as one static file for each machine, and an OCI image of it.

The image is an archive of an OCI image layout, which needs no daemon: an index of one image for
each machine, each with one layer. The tools that make such layouts put the present time into them.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import time
from pathlib import Path

import natives
from archives import write_entries

# By target: the machine as uname calls it, and as OCI does.
MACHINES = {
    "x86_64-linux-musl": ("x86_64", "amd64"),
    "aarch64-linux-musl": ("aarch64", "arm64"),
}
MEDIA = "application/vnd.oci.image"
COMMAND = "usr/bin/redlatch"
NOBODY = "65534:65534"


class Layout:
    """The files of an image layout."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def add(self, data: bytes, kind: str) -> dict[str, object]:
        """A blob. Returns its descriptor."""
        digest = hashlib.sha256(data).hexdigest()
        self.files[f"blobs/sha256/{digest}"] = data
        return {"mediaType": f"{MEDIA}.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    def add_json(self, value: object, kind: str) -> dict[str, object]:
        return self.add(json.dumps(value, sort_keys=True).encode(), kind)


def add_image(layout: Layout, files: dict[str, bytes], architecture: str, version: str, epoch: int
              ) -> dict[str, object]:
    raw = io.BytesIO()
    write_entries(raw, files, epoch)
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
    about = {"title": "redlatch", "version": version, "licenses": "Apache-2.0", "created": created}
    labels = {f"org.opencontainers.image.{name}": value for name, value in about.items()}
    diff = hashlib.sha256(raw.getvalue()).hexdigest()
    configuration = {
        "architecture": architecture, "os": "linux", "created": created,
        "config": {"Entrypoint": [f"/{COMMAND}"], "User": NOBODY, "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff}"]},
    }
    manifest = {
        "schemaVersion": 2, "mediaType": f"{MEDIA}.manifest.v1+json",
        "config": layout.add_json(configuration, "config.v1+json"),
        "layers": [layout.add(gzip.compress(raw.getvalue(), 9, mtime=0), "layer.v1.tar+gzip")],
    }
    descriptor = layout.add_json(manifest, "manifest.v1+json")
    return {**descriptor, "platform": {"architecture": architecture, "os": "linux"}}


def write_image(path: Path, commands: dict[str, bytes], texts: dict[str, str], version: str,
                epoch: int) -> None:
    """The archive of a layout, with an image for each architecture."""
    layout = Layout()
    about = {f"usr/share/doc/redlatch/{name}": text.encode() for name, text in texts.items()}
    images = [add_image(layout, {COMMAND: data, **about}, architecture, version, epoch)
              for architecture, data in commands.items()]
    index = {"schemaVersion": 2, "mediaType": f"{MEDIA}.index.v1+json", "manifests": images}
    whole = layout.add_json(index, "index.v1+json")
    named = {**whole, "annotations": {"org.opencontainers.image.ref.name": version}}
    layout.files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [named]}).encode()
    layout.files["oci-layout"] = json.dumps({"imageLayoutVersion": "1.0.0"}).encode()
    with path.open("wb") as file:
        write_entries(file, layout.files, epoch)


def make(root: Path, hiredis: Path, epoch: int, notices: str, out: Path) -> list[Path]:
    """The commands and the image. Returns them."""
    version = (root / "VERSION").read_text().strip()
    out.mkdir(parents=True, exist_ok=True)
    made, commands = [], {}
    for target, (machine, architecture) in MACHINES.items():
        command = natives.build(root, hiredis, target, epoch) / "bin/redlatch"
        path = out / f"redlatch-{version}-linux-{machine}"
        shutil.copyfile(command, path)
        path.chmod(0o755)
        made.append(path)
        commands[architecture] = command.read_bytes()
    texts = {"LICENSE": (root / "LICENSE").read_text(), "THIRD-PARTY-NOTICES.txt": notices}
    image = out / f"redlatch-{version}-oci.tar"
    write_image(image, commands, texts, version, epoch)
    return [*made, image]

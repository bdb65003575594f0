# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""A certificate authority of a test's own, which makes certificates with openssl(1).

    authority = Authority(tmp_path)
    with Server("redis", tls=authority.certificate("DNS:localhost", "IP:127.0.0.1")) as server:
        ...  # server.tls_url is rediss://
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

_CONFIG = """
[ca]
default_ca = ours
[ours]
new_certs_dir = {folder}
database = {folder}/index
rand_serial = yes
unique_subject = no
default_md = sha256
policy = any
copy_extensions = copy
[any]
commonName = supplied
"""


@dataclass(frozen=True)
class Certificate:
    cert: Path
    key: Path
    ca: Path  # the certificate of its authority


class Authority:
    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder / name
        self._folder.mkdir()
        self.ca = self._folder / "ca.pem"
        self._key = self._folder / "ca.key"
        self._count = 0
        (self._folder / "index").touch()
        self._config = self._folder / "config"
        self._config.write_text(_CONFIG.format(folder=self._folder))
        self._run("req", "-x509", *self._new_key(self._key), "-subj", f"/CN={name}", "-days", "2",
                  "-out", str(self.ca))  # fmt: skip

    def certificate(self, *names: str, is_expired: bool = False) -> Certificate:
        """A certificate for the hosts `names`, such as DNS:localhost or IP:127.0.0.1."""
        self._count += 1
        cert, key, request = (self._folder / f"{self._count}.{x}" for x in ("pem", "key", "csr"))
        extension = ["-addext", "subjectAltName=" + ",".join(names)] if names else []
        self._run("req", *self._new_key(key), "-subj", "/CN=test", *extension, "-out", str(request))
        until = ["-startdate", "20200101000000Z", "-enddate", "20200102000000Z"]
        self._run("ca", "-batch", "-notext", "-config", str(self._config), "-cert", str(self.ca),
                  "-keyfile", str(self._key), "-in", str(request), "-out", str(cert),
                  *(until if is_expired else ["-days", "2"]))  # fmt: skip
        return Certificate(cert, key, self.ca)

    @staticmethod
    def _new_key(path: Path) -> list[str]:
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        return [*curve, "-nodes", "-keyout", str(path)]

    @staticmethod
    def _run(*words: str) -> None:
        done = subprocess.run(["openssl", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The modules of go/ in their release form, laid out as the folder of a module proxy.

In a checkout the package finds an installed library by pkg-config. In its release form cgo compiles
the amalgamation, so that users need a compiler and nothing of ours; the tag redlatch_system chooses
the installed library again. Tests stay behind, and with them the modules that only they require.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from pathlib import Path

from archives import write_zip

MODULE = "redlatch.io/redlatch"
SCHEDULER = "gocronlock"
LAYER = "internal/rlc"
TAG = "redlatch_system"
SPDX = "// SPDX-License-Identifier: Apache-2.0\n// Copyright The redlatch authors\n"

CGO_SYSTEM = f"""\
{SPDX}
//go:build {TAG}

package rlc

// #cgo pkg-config: redlatch
import "C"
"""
# No -g: the debug information would be ten times the code, and double the time of the compiler.
CGO_INSIDE = f"""\
{SPDX}
//go:build !{TAG}

package rlc

// #cgo CPPFLAGS: -DNDEBUG
// #cgo CFLAGS: -O2 -g0
// #cgo CXXFLAGS: -std=c++20 -O2 -g0
// #cgo LDFLAGS: -ldl -lm -pthread
import "C"
"""


def go_files(folder: Path) -> dict[str, str]:
    """The sources of a package, and its examples, which use the standard library only."""
    names = (path.name for path in folder.glob("*.go"))
    kept = (name for name in names if not name.endswith("_test.go") or name == "example_test.go")
    return {name: (folder / name).read_text() for name in kept}


def with_header_beside(name: str, text: str) -> str:
    include = '#include "redlatch/redlatch.h"'
    if text.count(include) != 1:
        raise SystemExit(f"{name} must have one line {include} (got {text.count(include)})")
    return text.replace(include, '#include "redlatch.h"')


def layer_files(folder: Path, amalgamation: Mapping[str, str]) -> dict[str, str]:
    """internal/rlc. All files are in one folder, because `go mod vendor` copies no folder without
    Go in it."""
    files = go_files(folder)
    head = files.pop("cgo.go").split("package rlc")[0].split(SPDX, 1)[1]
    files["doc.go"] = f"{SPDX}{head}package rlc\n"
    files |= {"cgo_system.go": CGO_SYSTEM, "cgo_inside.go": CGO_INSIDE}
    for name in ("redlatch.cc", "redlatch_hiredis.c"):
        files[name] = f"//go:build !{TAG}\n\n{amalgamation[name]}"
    files["rlc_wrap.c"] = (folder / "rlc_wrap.c").read_text()
    for name in ("redlatch.cc", "rlc_wrap.c"):
        files[name] = with_header_beside(name, files[name])
    files["redlatch.h"] = amalgamation["redlatch/redlatch.h"]
    files["redlatch_hiredis.h"] = amalgamation["redlatch_hiredis.h"]
    return files


def released_mod(text: str, version: str) -> str:
    """go.mod without what belongs to the checkout: replacements, and what only tests require."""
    text = re.sub(r"^replace .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^(require )?\s*go\.uber\.org/goleak .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(rf"({re.escape(MODULE)}) v0\.0\.0\b", rf"\1 {version}", text)
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def released_sum(text: str, mod: str) -> str:
    """go.sum, of the modules that are still required."""
    wanted = re.findall(r"^(?:require )?\s*([\w./-]+\.[\w./-]+) v", mod, re.MULTILINE)
    lines = (line for line in text.splitlines(True) if line.split()[0] in wanted)
    return "".join(lines)


def module_files(root: Path, version: str, amalgamation: Mapping[str, str], notices: str
                 ) -> dict[str, str]:
    layer = layer_files(root / "go" / LAYER, amalgamation)
    return {
        **go_files(root / "go"),
        **{f"{LAYER}/{name}": text for name, text in layer.items()},
        "go.mod": released_mod((root / "go/go.mod").read_text(), version),
        "LICENSE": amalgamation["LICENSE"],
        "THIRD-PARTY-NOTICES.txt": notices,
    }


def scheduler_files(root: Path, version: str, licence: str) -> dict[str, str]:
    folder = root / "go" / SCHEDULER
    mod = released_mod((folder / "go.mod").read_text(), version)
    return {
        **go_files(folder),
        "go.mod": mod,
        "go.sum": released_sum((folder / "go.sum").read_text(), mod),
        "LICENSE": licence,
    }


def write_module(proxy: Path, module: str, version: str, files: Mapping[str, str],
                 epoch: int) -> list[Path]:
    """What a module proxy has of one version of a module. Returns the files."""
    folder = proxy / module / "@v"
    folder.mkdir(parents=True, exist_ok=True)
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
    texts = {
        "list": f"{version}\n",
        f"{version}.info": json.dumps({"Version": version, "Time": moment}) + "\n",
        f"{version}.mod": files["go.mod"],
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    write_zip(folder / f"{version}.zip", f"{module}@{version}", files, epoch)
    return [folder / name for name in (*texts, f"{version}.zip")]


def write_proxy(root: Path, proxy: Path, amalgamation: Mapping[str, str], notices: str,
                epoch: int) -> list[Path]:
    """Both modules, in the version that VERSION names."""
    version = "v" + (root / "VERSION").read_text().strip()
    library = module_files(root, version, amalgamation, notices)
    scheduler = scheduler_files(root, version, amalgamation["LICENSE"])
    written = write_module(proxy, MODULE, version, library, epoch)
    return written + write_module(proxy, f"{MODULE}/{SCHEDULER}", version, scheduler, epoch)

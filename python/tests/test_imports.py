# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the files of the package import each other in one direction, so that each can be read, and
changed, with those below it alone.

Method: the imports are read from the text, also those inside functions and of types alone, and the
files that import no other are taken away until none is left.
"""

from __future__ import annotations

import ast
from pathlib import Path

import redlatch

FOLDER = Path(redlatch.__file__).parent


def imports_of(text: str, names: set[str]) -> set[str]:
    """Those of `names` that a file imports: `from ._x import y` and `from . import _x`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            found |= {node.module} if node.module else {alias.name for alias in node.names}
    return found & names


def circle_in(texts: dict[str, str]) -> list[str]:
    """The files that are in a circle, or import one that is."""
    left = {name: imports_of(text, set(texts)) for name, text in texts.items()}
    while done := {name for name, imported in left.items() if not imported & set(left)}:
        left = {name: imported for name, imported in left.items() if name not in done}
    return sorted(left)


def test_imports_have_no_circle() -> None:
    assert circle_in({path.stem: path.read_text() for path in FOLDER.glob("_*.py")}) == []


def test_a_circle_is_found() -> None:
    hidden = "def f():\n    from . import _a\n"
    assert circle_in({"_a": "from ._b import x\n", "_b": hidden, "_c": ""}) == ["_a", "_b"]

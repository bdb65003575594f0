# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: the module is the C ABI, wholly and as its stub says, and shows nothing of its inside.

Method: the header, the source of the glue, the stub and the built module are compared with each
other; each comparison is tried with a planted difference.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
import redlatch
from redlatch import _core
from support.build import ROOT

HEADER = (ROOT / "capi/include/redlatch/redlatch.h").read_text()
GLUE = "".join(
    (ROOT / "bindings/python" / name).read_text() for name in ("handles.h", "module.cc")
)
STUB = (ROOT / "python/src/redlatch/_core.pyi").read_text()

# What the glue leaves out. Everything else of the ABI is there.
NOT_USED = {
    "rl_acquire_options_get": "Python's own table has the options of an acquire",
    "rl_client_options_get": "a client shows its options by client_option()",
    "rl_abi_version": "the library is inside the module: there is one version",
    "rl_acquire": "goes on after a signal; acquire_start() does not",
    "rl_acquire_all": "likewise",
    "rl_embedded_inspect": "for operators: `redlatch server` shows it",
    "rl_leader_watch": "goes on after a signal; leader_watch_start() does not",
    "rl_lease_part_count": "the list of names has it",
    "rl_once_begin": "goes on after a signal; once_begin_start() does not",
    "rl_queue_drive": "the library reads for the loop, which keeps the GIL for less time",
    "rl_queue_next_event": "a tag is enough: the table has who waits, and the request its result",
    "rl_redlock_acquire": "the same as rl_acquire",
    "rl_redlock_acquire_start": "the same as rl_acquire_start",
    "rl_redlock_close": "the same as rl_client_close",
    "rl_request_cancel": "request_free() cancels",
    "rl_rw_acquire_read": "likewise",
    "rl_rw_acquire_write": "likewise",
    "rl_rw_upgrade": "likewise",
    "rl_semaphore_set_cap": "for operators: `redlatch limit` sets it",
    "rl_semaphore_set_cap_start": "likewise",
    "rl_status_name": "Status has the names",
    "rl_url_redact": "a client shows its URL by client_option()",
}


# The typed setters of acquire options: Python sets all options by their names.
BY_NAME = re.compile(r"rl_acquire_options_set_\w+")


def functions_of_header(header: str) -> set[str]:
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    return set(re.findall(r"^RL_API [\w\s*]*?\b(rl_\w+)\(", code, re.MULTILINE))


def differences(header: str, glue: str) -> set[str]:
    """Functions that neither the glue nor the list has, or that both have."""
    used = set(re.findall(r"\b(rl_\w+)\b", re.sub(r"//.*", "", glue)))
    declared = {one for one in functions_of_header(header) if not BY_NAME.fullmatch(one)}
    return (declared - (used ^ set(NOT_USED))) | (set(NOT_USED) - declared)


def test_every_function_is_used_or_has_a_reason() -> None:
    assert len(functions_of_header(HEADER)) > 50
    assert differences(HEADER, GLUE) == set()


def test_missing_function_is_found() -> None:
    assert differences(HEADER + "\nRL_API int rl_new(void);\n", GLUE) == {"rl_new"}
    assert differences(HEADER, GLUE + "\nrl_acquire();\n") == {"rl_acquire"}
    assert differences(HEADER, GLUE.replace("rl_info_count", "rl_look")) == {"rl_info_count"}


# ---- the stub ------------------------------------------------------------------------------------

_PYBIND_WORDS = {
    "typing.SupportsInt | typing.SupportsIndex": "int",
    "redlatch._core.": "",
}
_OPTIONAL = re.compile(r"Optional\[(\w+)\]")


def signatures_of_module() -> dict[str, str]:
    """As pybind11 writes them into the documentation of each function, without names."""
    found = {}
    for name, value in vars(_core).items():
        if callable(value) and not isinstance(value, type):
            text = str(value.__doc__).splitlines()[0]
            for word, ours in _PYBIND_WORDS.items():
                text = text.replace(word, ours)
            match = re.fullmatch(r"\w+\((.*)\) -> (.+)", text)
            assert match, text
            types = [argument.partition(": ")[2] for argument in match[1].split(", ") if argument]
            found[name] = f"({', '.join(types)}) -> {match[2]}"
    return found


def signatures_of_stub(stub: str) -> dict[str, str]:
    """Likewise; what may be None is not told apart there."""
    found = {}
    for node in ast.parse(stub).body:
        if isinstance(node, ast.FunctionDef):
            types = [ast.unparse(a.annotation) for a in node.args.posonlyargs if a.annotation]
            assert len(types) == len(node.args.posonlyargs) and not node.args.args
            text = f"({', '.join(types)}) -> {ast.unparse(node.returns) if node.returns else ''}"
            found[node.name] = _OPTIONAL.sub(r"\1", text)
    return found


def classes_of_stub(stub: str) -> set[str]:
    return {node.name for node in ast.parse(stub).body if isinstance(node, ast.ClassDef)}


def test_stub_is_the_module() -> None:
    assert signatures_of_stub(STUB) == signatures_of_module()
    assert classes_of_stub(STUB) == {n for n, v in vars(_core).items() if isinstance(v, type)}


def test_wrong_stub_is_found() -> None:
    module = signatures_of_module()
    assert signatures_of_stub(STUB.replace("wait_ms: int", "wait_ms: str")) != module
    assert signatures_of_stub(STUB.replace("def inspect", "def look")) != module


def test_handles_that_may_be_missing_are_optional() -> None:
    for node in ast.parse(STUB).body:
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            returned = ast.unparse(node.returns)
            if returned.removeprefix("Optional[").rstrip("]") in classes_of_stub(STUB):
                assert returned.startswith("Optional["), node.name


def test_none_is_no_handle() -> None:
    with pytest.raises(TypeError):
        _core.lease_state(None)  # type: ignore[arg-type]


# ---- the binary ----------------------------------------------------------------------------------


def exported(path: Path) -> set[str]:
    command = ["nm", "-D", "--defined-only", str(path)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in output.splitlines()}


def needed(path: Path) -> str:
    command = ["readelf", "-d", str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_only_the_entry_is_exported() -> None:
    assert _core.__file__ is not None
    path = Path(_core.__file__)
    assert exported(path) == {"PyInit__core"}
    assert "hiredis" not in needed(path) and "libredlatch" not in needed(path)


def test_command_is_installed_beside_python() -> None:
    command = Path(sys.executable).parent / "redlatch"
    done = subprocess.run([command, "version"], check=True, capture_output=True, text=True)
    assert done.stdout == f"redlatch {redlatch.__version__}\n"
    # It stands alone: a wheel has no shared library for it.
    assert "libredlatch" not in needed(command)


def test_version_is_that_of_the_tree() -> None:
    assert redlatch.__version__ == (ROOT / "VERSION").read_text().strip()

# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Goal: a subinterpreter, as mod_wsgi makes by default, is refused in a sentence, and at once.

Method: a process that makes one in each way that its Python has, and imports redlatch there, before
and after the main interpreter has; it ends within a limit.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

LIMIT = 60

INSIDE = """
import sys
sys.path[:] = {path!r}
try:
    import redlatch
except ImportError as error:
    print("refused:", error, flush=True)
else:
    print("imported", flush=True)
"""

RUN = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
def run(source):
    failure = interpreters.run_string({create}, source)
    assert failure is None, failure
"""

# The first is what Py_NewInterpreter() makes.
IS_NAMED = sys.version_info >= (3, 13)
WAYS = {
    "legacy": f"interpreters.create({repr('legacy') if IS_NAMED else 'isolated=False'})",
    "isolated": "interpreters.create()",
}


def run_python(source: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", source]
    return subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=False)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("first", ["", "import redlatch; "])
def test_a_subinterpreter_is_refused(way: str, first: str) -> None:
    inside = INSIDE.format(path=sys.path)
    path = f"import sys; sys.path[:] = {sys.path!r}"
    last = "import redlatch; print('main', redlatch.__version__)"
    run = RUN.format(create=WAYS[way])
    script = "\n".join([path, first, run, f"for _ in range(2): run({inside!r})", last])
    done = run_python(script)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 3, done.stdout
    for line in lines[:2]:
        assert line.startswith("refused:") and "subinterpreter" in line
        if way == "legacy" or not IS_NAMED:  # CPython itself refuses the others.
            assert "redlatch must be imported by the main interpreter" in line
    # The main interpreter, before and after, is as good as ever.
    assert lines[2].startswith("main ")

# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""How many functions and fields a class of C++ has, by Universal Ctags. Used by tidy.py.

Cutting a class over several files does not make it smaller, so this counts where the class is
declared.
"""

import collections
import json
import shutil
import subprocess

MAX_FUNCTIONS = 60
MAX_FIELDS = 25
COUNTED = ("core/", "capi/", "cli/src/", "embedded/")
CTAGS = ("ctags", "--language-force=C++", "--kinds-C++=cfmps", "--fields=+KSZn",
         "--output-format=json", "-f", "-", "-L", "-")


def can_count():
    return shutil.which(CTAGS[0]) is not None


def sizes(root, paths):
    """(path, line, class, functions, fields) of each class."""
    done = subprocess.run(CTAGS, cwd=root, input="\n".join(paths), capture_output=True, text=True,
                          check=True)
    tags = [json.loads(line) for line in done.stdout.splitlines()]
    declared = {}
    functions, fields = collections.Counter(), collections.Counter()
    for tag in tags:
        if tag["kind"] in ("class", "struct"):
            scope = tag.get("scope")
            name = f"{scope}::{tag['name']}" if scope else tag["name"]
            declared[tag["path"], name] = int(tag["line"])
    for tag in tags:
        # A definition outside of its class is in another file, or is counted by its declaration.
        place = tag["path"], tag.get("scope")
        if place not in declared:
            continue
        functions[place] += tag["kind"] in ("prototype", "function")
        fields[place] += tag["kind"] == "member"
    for (path, name), line in declared.items():
        yield path, line, name, functions[path, name], fields[path, name]


def check_classes(root, paths):
    """Yields (path, line, what is wrong)."""
    counted = [path for path in paths
               if path.startswith(COUNTED) and path.endswith((".h", ".hpp", ".cc"))]
    if not counted or not can_count():
        return
    for path, line, name, *counts in sizes(root, counted):
        for what, count, most in zip(("functions", "fields"), counts, (MAX_FUNCTIONS, MAX_FIELDS)):
            if count > most:
                yield path, line, f"{count} {what} in {name}; at most {most}"

# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""How many functions and fields a class of C++ has, and which of its fields a mutex guards, by
Universal Ctags. Used by tidy.py.

Cutting a class over several files does not make it smaller, so this counts where the class is
declared.
"""

import collections
import json
import os
import re
import shutil
import subprocess

MAX_FUNCTIONS = 60
MAX_FIELDS = 25
COUNTED = ("core/", "capi/", "cli/src/", "embedded/")
# The annotations of core/base/thread_annotations.h.
ANNOTATIONS = ("CAPABILITY+", "SCOPED_CAPABILITY", "GUARDED_BY+", "PT_GUARDED_BY+", "UNGUARDED+",
               "REQUIRES+", "ACQUIRE+", "RELEASE+", "ASSERTS_HELD+", "NOT_ANALYSED")
CTAGS = ("ctags", "--language-force=C++", "--kinds-C++=cfmps", "--fields=+KSZn",
         "-I", ",".join(ANNOTATIONS), "--output-format=json", "-f", "-", "-L", "-")
# Where each field of a class that has a mutex, or a guarded field, says what guards it.
GUARDED = ("core/",)
MUTEX = re.compile(r"^(?:std::)?(?:\w*Mutex|mutex|shared_mutex)\s")
NEEDS_NO_MUTEX = re.compile(
    r"^(?:static |constexpr |const [^*]*$|std::atomic\b|std::condition_variable\b)"
    r"|&\s*\w+$|\*const ")


def can_count():
    return shutil.which(CTAGS[0]) is not None


def read_tags(root, paths):
    """The tags, and (path, class) -> line of each class."""
    done = subprocess.run(CTAGS, cwd=root, input="\n".join(paths), capture_output=True, text=True,
                          check=True)
    tags = [json.loads(line) for line in done.stdout.splitlines()]
    declared = {}
    for tag in tags:
        if tag["kind"] in ("class", "struct"):
            scope = tag.get("scope")
            name = f"{scope}::{tag['name']}" if scope else tag["name"]
            declared[tag["path"], name] = int(tag["line"])
    return tags, declared


def sizes(tags, declared):
    """(path, line, class, functions, fields) of each class."""
    functions, fields = collections.Counter(), collections.Counter()
    for tag in tags:
        # A definition outside of its class is in another file, or is counted by its declaration.
        place = tag["path"], tag.get("scope")
        if place not in declared:
            continue
        functions[place] += tag["kind"] in ("prototype", "function")
        fields[place] += tag["kind"] == "member"
    for (path, name), line in declared.items():
        yield path, line, name, functions[path, name], fields[path, name]


def declaration(lines, number):
    """Of the field in this line, without its comment and initializer."""
    text = ""
    for line in lines[number - 1:number + 3]:
        text += re.sub(r"//.*", "", line)
        if ";" in text:
            break
    return re.sub(r"\s+", " ", re.sub(r"^mutable ", "", text.strip().split(";")[0]))


def unguarded(root, tags, declared):
    """(path, line, field) of each that does not say what guards it, and has to."""
    lines, fields = {}, collections.defaultdict(list)
    for tag in tags:
        path = tag["path"]
        if tag["kind"] != "member" or not path.startswith(GUARDED):
            continue
        if path not in lines:
            with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
                lines[path] = file.read().split("\n")
        text = declaration(lines[path], int(tag["line"]))
        fields[path, tag.get("scope")].append((int(tag["line"]), tag["name"], text))
    for (path, scope), members in fields.items():
        is_meant = any(MUTEX.match(text) or "GUARDED_BY(" in text for _, _, text in members)
        for line, name, text in members if is_meant and (path, scope) in declared else ():
            bare = re.split(r" ?[={]", text)[0]
            is_said = MUTEX.match(text) or re.search(r"\b(?:PT_|UN)?GUARDED(?:_BY)?\(", text)
            if not is_said and not NEEDS_NO_MUTEX.search(bare):
                yield path, line, name


def check_classes(root, paths):
    """Yields (path, line, what is wrong)."""
    counted = [path for path in paths
               if path.startswith(COUNTED) and path.endswith((".h", ".hpp", ".cc"))]
    if not counted or not can_count():
        return
    tags, declared = read_tags(root, counted)
    for path, line, name, *counts in sizes(tags, declared):
        for what, count, most in zip(("functions", "fields"), counts, (MAX_FUNCTIONS, MAX_FIELDS)):
            if count > most:
                yield path, line, f"{count} {what} in {name}; at most {most}"
    for path, line, name in unguarded(root, tags, declared):
        yield path, line, f"{name} does not say what guards it; GUARDED_BY(mutex) or UNGUARDED(why)"

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Checks what a compiler does not: sizes, licence lines, the direction of includes, words.

    tools/tidy.py               check every tracked or new file that is not ignored
    tools/tidy.py --root DIR    the same elsewhere
    tools/tidy.py --self-test   plant each defect in a scratch tree and see that it is found

A finding reads `file:line: what is wrong; what is allowed`. Standard library only.
"""

import argparse
import ast
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MAX_COLUMNS = 100
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 70
# The public header is the manual, in one piece: most of its lines are prose.
LONG_FILES = ("capi/include/redlatch/redlatch.h",)

C_SUFFIXES = (".c", ".cc", ".cpp", ".h", ".hpp")
BRACE_SUFFIXES = C_SUFFIXES + (".go", ".java")
SCRIPT_SUFFIXES = (".py", ".sh", ".lua", ".cmake")
SOURCE_SUFFIXES = BRACE_SUFFIXES + SCRIPT_SUFFIXES + (".i", ".def", ".map", ".pml")
SOURCE_NAMES = ("CMakeLists.txt",)
NOT_OURS = ("LICENSE",)
# Written by machines, a checksum to a line.
CHECKSUM_LISTS = ("go.sum", "package-lock.json", ".sha256")

# What each folder may name. The order of core's folders is the order of docs/design and
# CONTRIBUTING.md: arrows point down, and siblings never name each other.
CORE = ("base", "timing", "protocol", "net", "embedded", "config", "lock", "quorum", "runtime")
MAY_NAME = {
    "core/base": ("base",),
    "core/timing": ("base", "timing"),
    "core/protocol": ("base", "protocol"),
    "core/net": ("base", "net"),
    "core/embedded": ("base", "protocol", "net", "embedded"),
    "core/lock": ("base", "timing", "protocol", "lock"),
    "core/quorum": ("base", "timing", "protocol", "lock", "quorum"),
    "core/config": ("base", "protocol", "net", "embedded", "config"),
    "core/runtime": tuple(f for f in CORE if f != "config"),
    # The supervisor program.
    "embedded": ("base", "net", "embedded"),
    "capi/src": ("base", "config", "runtime", "redlatch"),
    "capi/include": ("redlatch",),
}
# Users of the contract see nothing else of us.
CONTRACT_ONLY = ("cli", "examples", "bindings", "go", "java", "tests/capi", "tests/conformance")
CONTRACT = ("redlatch/redlatch.h", "redlatch/redlatch.hpp")
STATUS_LIST = "statuses.def"  # data, not code: the compiler compares core's enum with it

# (headers, where the rule holds, where it does not, what is allowed)
HEADER_RULES = (
    (
        re.compile(r"(hiredis|openssl)/"),
        ("",),
        ("core/net", "tests", "bench"),
        "hiredis and OpenSSL only in core/net",
    ),
    (
        re.compile(r"(sys/socket|netinet/.*|arpa/inet|netdb|poll|sys/poll|sys/epoll)\.h$"),
        ("core", "capi", "cli", "bindings"),
        ("core/net",),
        "sockets only in core/net",
    ),
    (
        re.compile(
            r"(chrono|thread|mutex|shared_mutex|condition_variable|future|random|ctime"
            r"|time\.h|sys/time\.h|pthread\.h|unistd\.h)$"
        ),
        ("core/timing", "core/lock", "core/quorum"),
        (),
        "no clock, thread or random source here: take `now` and entropy as arguments",
    ),
)

# Written so that this file does not contain what it looks for.
WORDS = (
    (
        re.compile(
            r"py[p]i\.(org|io)|pythonhosted\.or[g]|npm[j]s\.|crates\.i[o]\b|maven\.or[g]"
            r"|proxy\.golang\.or[g]|(deb|security|snapshot|ftp)\.debian\.or[g]"
            r"|(archive|security)\.ubuntu\.co[m]|rubygems\.or[g]|docker\.i[o]\b|ghcr\.i[o]\b"
        ),
        "a package registry's host name; name the package, not the host",
    ),
    (
        re.compile(r"(?<![\w.$})~*/-])/(wor[k]|hom[e]|roo[t])/"),
        "an absolute path of one machine; use a path from the top of the tree",
    ),
    (
        re.compile(r"\b(TOD[O]|FIXM[E]|XX[X])\b(?!\(#\d+\))"),
        "a note that nobody will find; TOD" "O(#number) of an issue, or nothing",
    ),
)


def under(path, folder):
    return folder == "" or path == folder or path.startswith(folder + "/")


def listed_files(root):
    """Tracked and new files; where there is no git, everything but hidden and build folders."""
    command = ["git", "-C", root, "ls-files", "-z", "-co", "--exclude-standard"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode == 0:
        names = set(done.stdout.decode().split("\0")) - {""}
    else:
        names = set()
        for folder, folders, files in os.walk(root):
            folders[:] = [f for f in folders if f != "build" and not f.startswith(".")]
            names.update(os.path.relpath(os.path.join(folder, f), root) for f in files)
    return sorted(n for n in names if os.path.isfile(os.path.join(root, n)))


def is_generated(lines):
    return any("@generated" in line or "DO NOT EDIT" in line for line in lines[:5])


def is_script(lines):
    return bool(lines) and lines[0].startswith("#!")


def is_source(path, lines):
    name = os.path.basename(path)
    return path.endswith(SOURCE_SUFFIXES) or name in SOURCE_NAMES or is_script(lines)


def check_text(path, lines):
    generated = is_generated(lines)
    for number, line in enumerate(lines, 1):
        # A table row of Markdown and a lone address cannot be broken.
        unbreakable = path.endswith(".md") and (line.startswith("|") or " " not in line.strip())
        unbreakable = unbreakable or path.endswith(CHECKSUM_LISTS)
        if len(line) > MAX_COLUMNS and not generated and not unbreakable:
            yield number, f"{len(line)} columns; at most {MAX_COLUMNS}"
        for pattern, message in WORDS:
            found = pattern.search(line)
            if found:
                yield number, f"`{found.group(0)}` is {message}"
    if not is_source(path, lines):
        return
    if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:5]):
        yield 1, "no licence line; `SPDX-License-Identifier: Apache-2.0` in the first five lines"
    if len(lines) > MAX_FILE_LINES and not generated and path not in LONG_FILES:
        yield MAX_FILE_LINES + 1, f"{len(lines)} lines in a file; at most {MAX_FILE_LINES}"


def check_includes(path, lines):
    folder = next((f for f in MAY_NAME if under(path, f)), None)
    if not folder and path.endswith((".cc", ".h")) and under(path, "core"):
        yield 1, "no rule says what this folder may name; add one to tools/tidy.py"
    contract_only = any(under(path, f) for f in CONTRACT_ONLY)
    for number, line in enumerate(lines, 1):
        found = re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line)
        if not found:
            continue
        name = found.group(1)
        for pattern, where, but_not, allowed in HEADER_RULES:
            inside = any(under(path, f) for f in where)
            if inside and not any(under(path, f) for f in but_not) and pattern.match(name):
                yield number, f"includes {name}; {allowed}"
        top = name.split("/")[0]
        ours = top in CORE or top in ("core", "capi", "redlatch", "..")
        if not ours or "/" not in name or os.path.basename(name) == STATUS_LIST:
            continue
        if contract_only and name not in CONTRACT:
            if top in ("..", "redlatch") or top in CORE + ("core", "capi"):
                yield number, f"includes {name}; only {' or '.join(CONTRACT)} of the library"
        elif folder and top not in MAY_NAME[folder]:
            allowed = ", ".join(MAY_NAME[folder])
            yield number, f"{folder} includes {name}; it may name only {allowed}"


BLANKED = re.compile(
    r"""//[^\n]*|/\*.*?\*/                                # comments
      |R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"         # raw strings
      |`[^`]*`                                            # raw strings of Go
      |"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'  # strings, characters
      |^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*                     # the preprocessor""",
    re.S | re.M | re.X,
)


def blanked(text):
    """The text with everything that may hold a stray brace replaced, line ends kept."""
    return BLANKED.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


CONTAINER = re.compile(
    r"(?:\[\[.*?\]\]|\b(?:inline|typedef|static|public|private|protected|abstract|final|export)\b"
    r"|[\s:])*\b(?:namespace|class|struct|union|enum|interface|extern|type|record)\b"
)


def opens_function(head):
    head = re.sub(r"\btemplate\s*<[^{};]*?>\s*(?=\w)", "", head.strip())
    if "(" not in head or re.search(r"[=,(]$", head):
        return False
    if re.match(r"(?:\w+\s+)*record\s+\w+", head):  # of Java, with what it consists of
        return False
    return not (CONTAINER.match(head) and not re.search(r"\)[\w\s]*$", head))


def brace_functions(text):
    """(first line, last line) of each outermost function of C, C++, Go or Java."""
    code = blanked(text)
    depth = []  # True for a brace that opens a function
    start = head_from = 0
    for found in re.finditer(r"[{};]", code):
        at, what = found.start(), found.group(0)
        if what == "{":
            head = code[head_from:at]
            function = True not in depth and opens_function(head)
            if function:
                start = head_from + len(head) - len(head.lstrip())
            depth.append(function)
        elif what == "}" and depth and depth.pop():
            yield code.count("\n", 0, start) + 1, code.count("\n", 0, at) + 1
        head_from = at + 1


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno


def check_functions(path, text):
    if path.endswith(BRACE_SUFFIXES):
        functions = brace_functions(text)
    elif path.endswith(".py") or re.match(r"#!.*python", text):
        functions = python_functions(text)
    else:
        return
    try:
        for first, last in functions:
            count = last - first + 1
            if count > MAX_FUNCTION_LINES:
                yield first, f"{count} lines in a function; at most {MAX_FUNCTION_LINES}"
    except SyntaxError as error:
        yield error.lineno or 1, f"does not parse: {error.msg}; only Python that does"


def check_file(root, path):
    if os.path.basename(path) in NOT_OURS:
        return
    with open(os.path.join(root, path), "rb") as file:
        data = file.read()
    if b"\0" in data:
        return
    try:
        text = data.decode()
    except UnicodeDecodeError:
        yield 1, "is not UTF-8; only UTF-8"
        return
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    yield from check_text(path, lines)
    if path.endswith(C_SUFFIXES + (".i", ".def")):
        yield from check_includes(path, lines)
    if not is_generated(lines):
        yield from check_functions(path, text)


def findings(root):
    for path in listed_files(root):
        for line, message in check_file(root, path):
            yield f"{path}:{line}: {message}"


SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
SPDX_HASH = SPDX.replace("//", "#")
LONG_BODY = "  f();\n" * 80
INIT = "A::A() : a_{1}, b_(2) {\n"

# (file, content, a part of the finding, or None where nothing may be found)
PLANTED = (
    ("core/base/wide.h", SPDX + "// " + "x" * 100 + "\n", "103 columns"),
    ("core/base/long.h", SPDX + "int x;\n" * 600, "601 lines in a file"),
    ("core/base/f.cc", SPDX + "void f(int a) {\n" + LONG_BODY + "}\n", "82 lines in a function"),
    ("core/base/init.cc", SPDX + INIT + LONG_BODY + "}\n", "lines in a function"),
    ("core/base/c.cc", SPDX + "struct S f(void) {\n" + LONG_BODY + "}\n", "lines in a function"),
    ("core/base/t.cc", SPDX + "template <class T>\nT f() {\n" + LONG_BODY + "}\n", "83 lines"),
    ("core/base/m.cc", SPDX + "class A : B<C()> {\nint f() {\n" + LONG_BODY + "}\n};\n", "82 lin"),
    ("core/base/class.h", SPDX + "class A {\n" + "  void f();\n" * 90 + "};\n", None),
    ("core/base/space.h", SPDX + "namespace a {\n" + "void f() {}\n" * 90 + "}\n", None),
    ("java/Info.java", SPDX + "public record A(int b) {\n" + "void f() {}\n" * 90 + "}\n", None),
    ("core/base/text.cc", SPDX + 'void f() { g("{", \'{\'); }  // {\n' + "int a;\n" * 90, None),
    ("core/base/table.cc", SPDX + "int a[] = {\n" + "  f(1),\n" * 90 + "};\n", None),
    ("tools/long.py", SPDX_HASH + "def f():\n" + "    g()\n" * 80, "81 lines in a function"),
    ("tools/bad.py", SPDX_HASH + "def f(:\n", "does not parse"),
    ("core/base/bare.h", "int x;\n", "no licence line"),
    ("core/protocol/scripts/bare.lua", "return 1\n", "no licence line"),
    ("tools/bare", "#!/bin/sh\ntrue\n", "no licence line"),
    ("core/CMakeLists.txt", "project(x)\n", "no licence line"),
    ("core/base/up.h", SPDX + '#include "timing/x.h"\n', "may name only base"),
    ("core/timing/side.h", SPDX + '#include "protocol/x.h"\n', "may name only base, timing"),
    ("core/protocol/side.h", SPDX + "#include <net/x.h>\n", "may name only base, protocol"),
    ("core/lock/net.h", SPDX + '#include "net/x.h"\n', "core/lock includes net/x.h"),
    ("core/lock/ok.h", SPDX + '#include "timing/x.h"\n#include "protocol/x.h"\n', None),
    ("core/lock/up.h", SPDX + '#include "quorum/x.h"\n', "core/lock includes quorum/x.h"),
    ("core/quorum/net.h", SPDX + '#include "net/x.h"\n', "core/quorum includes net/x.h"),
    ("core/quorum/lock.h", SPDX + "#include <mutex>\n", "no clock, thread or random"),
    ("core/config/up.h", SPDX + '#include "runtime/x.h"\n', "core/config includes runtime/x.h"),
    ("core/runtime/side.h", SPDX + '#include "config/x.h"\n', "core/runtime includes config/x.h"),
    ("core/news/x.h", SPDX, "no rule says"),
    ("core/runtime/up.h", SPDX + '#include "redlatch/redlatch.h"\n', "core/runtime includes redl"),
    ("core/runtime/dots.h", SPDX + '#include "../base/x.h"\n', "includes ../base/x.h"),
    ("core/base/list.h", SPDX + '#include "../../capi/statuses.def"\n', None),
    ("capi/src/deep.cc", SPDX + '#include "lock/x.h"\n', "may name only base, config, runtime"),
    ("cli/src/deep.cc", SPDX + '#include "runtime/x.h"\n', "only redlatch/redlatch.h"),
    ("examples/c/deep.c", SPDX + '#include "redlatch/private.h"\n', "only redlatch/redlatch.h"),
    ("tests/capi/deep.c", SPDX + '#include "../../core/base/x.h"\n', "only redlatch/redlatch.h"),
    ("go/internal/rlc/deep.c", SPDX + '#include "runtime/x.h"\n', "only redlatch/redlatch.h"),
    ("java/redlatch/deep.c", SPDX + '#include "runtime/x.h"\n', "only redlatch/redlatch.h"),
    ("tests/unit/ok.cc", SPDX + '#include "lock/x.h"\n#include <thread>\n', None),
    ("core/runtime/hiredis.h", SPDX + "#include <hiredis/hiredis.h>\n", "hiredis and OpenSSL only"),
    ("core/runtime/ssl.h", SPDX + "#include <openssl/ssl.h>\n", "hiredis and OpenSSL only"),
    ("core/protocol/socket.h", SPDX + "#include <sys/socket.h>\n", "sockets only in"),
    ("core/lock/poll.h", SPDX + "#include <poll.h>\n", "sockets only in"),
    ("core/net/ok.h", SPDX + "#include <hiredis/hiredis.h>\n#include <poll.h>\n", None),
    ("core/timing/clock.h", SPDX + "#include <chrono>\n", "no clock, thread or random"),
    ("core/lock/lock.h", SPDX + "#  include <mutex>\n", "no clock, thread or random"),
    ("core/runtime/ok.h", SPDX + "#include <mutex>\n", None),
    ("docs/host.md", "see https://py" "pi.org/x\n", "registry's host name"),
    ("docs/path.md", "in /wor" "k/main\n", "absolute path"),
    ("docs/fine.md", "a/wor" "k/x $root/roo" "t/x TOD" "O(#12)\n", None),
    ("core/base/note.h", SPDX + "// TOD" "O: later\n", "nobody will find"),
    ("docs/latin.md", b"caf\xe9\n", "not UTF-8"),
    ("docs/table.md", "| " + "x " * 80 + "|\n", None),
    ("core/base/gen.h", SPDX + "// @generated\n" + "int x;\n" * 700, None),
)


def self_test():
    failures = 0
    for path, content, expected in PLANTED:
        with tempfile.TemporaryDirectory() as root:
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full))
            with open(full, "wb") as file:
                file.write(content if isinstance(content, bytes) else content.encode())
            found = list(findings(root))
        as_expected = any(expected in f for f in found) if expected else not found
        if not as_expected or len(found) > 1:
            failures += 1
            print(f"self-test: {path}: expected {expected or 'nothing'}, found {found}")
    print(f"tidy --self-test: {len(PLANTED) - failures} of {len(PLANTED)} as expected")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description="Checks sizes, licences, includes and words.")
    parser.add_argument("--root", default=TOP)
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    found = list(findings(options.root))
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

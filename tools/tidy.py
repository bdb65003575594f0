#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Checks what a compiler does not: sizes, licence lines, the direction of names, words.

    tools/tidy.py               check every tracked or new file that is not ignored
    tools/tidy.py FILE...       check these only
    tools/tidy.py --root DIR    the same elsewhere
    tools/tidy.py --words       count refused words and openers in README, docs and headers
    tools/tidy.py --self-test   plant each defect in a scratch tree and see that it is found

A finding reads `file:line: what is wrong; what is allowed`. Standard library only, and Universal
Ctags for the sizes of classes, which are not counted without it.
"""

import argparse
import ast
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import class_sizes
import docstrings
import sentences
import tidy_planted
import words

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MAX_COLUMNS = 100
MAX_FILE_LINES = 600
MAX_LIBRARY_LINES = 400  # of a file of the library
LIBRARY = ("core/", "capi/")
MAX_FUNCTION_LINES = 70
# The public headers are the manuals, in one piece: most of their lines are prose.
LONG_FILES = (
    "capi/include/redlatch/redlatch.h",
    "capi/include/redlatch/redlatch.hpp",
)

C_SUFFIXES = (".c", ".cc", ".cpp", ".h", ".hpp")
BRACE_SUFFIXES = C_SUFFIXES + (".go", ".java")
SCRIPT_SUFFIXES = (".py", ".sh", ".lua", ".cmake")
SOURCE_SUFFIXES = BRACE_SUFFIXES + SCRIPT_SUFFIXES + (".i", ".def", ".map", ".pml")
SOURCE_NAMES = ("CMakeLists.txt",)
NOT_OURS = ("LICENSE",)
# Marks generated files for review tools. Drawings are generated too, and have no head.
ATTRIBUTES = ".gitattributes"
HEADLESS = (".svg",)
# Written by machines, a checksum or a type to a line.
CHECKSUM_LISTS = ("go.sum", "package-lock.json", ".sha256", ".abi")
HISTORY = "bench/history"  # a figure to a line

# What each folder may name, as in docs/ARCHITECTURE.md: arrows point down, and siblings never name
# each other.
MAY_NAME = {
    "core/base": ("base",),
    # What the library asks of the machine. What may not name it compiles for any host.
    "core/host": ("base", "host"),
    "core/timing": ("base", "timing"),
    "core/protocol": ("base", "protocol"),
    "core/resp": ("base", "resp"),
    "core/net": ("base", "host", "resp", "net"),
    "core/embedded": ("base", "host", "protocol", "resp", "net", "embedded"),
    "core/sentinel": ("base", "timing", "protocol", "sentinel"),
    "core/session": ("base", "timing", "protocol", "session"),
    "core/operate": ("base", "timing", "protocol", "session", "operate"),
    "core/lock": ("base", "timing", "protocol", "session", "operate", "lock"),
    "core/compound": ("base", "lock", "compound"),
    "core/quorum": ("base", "timing", "protocol", "session", "operate", "lock", "compound",
                    "quorum"),
    "core/cluster": ("base", "timing", "protocol", "session", "operate", "lock", "cluster"),
    "core/flight": ("base", "protocol", "operate", "lock", "compound", "flight"),
    "core/election": ("base", "operate", "lock", "compound", "election"),
    "core/composite": ("base", "protocol", "lock", "compound", "flight", "election", "composite"),
    "core/driver": ("base", "timing", "protocol", "sentinel", "session", "operate", "lock",
                    "quorum", "cluster", "composite", "driver"),
    "core/config": ("base", "host", "protocol", "config"),
    "core/runtime": ("base", "host", "timing", "protocol", "resp", "net", "embedded", "sentinel",
                     "session", "operate", "lock", "quorum", "cluster", "driver", "runtime"),
    # The supervisor program.
    "embedded": ("base", "host", "resp", "net", "embedded"),
    "capi/src": ("base", "host", "config", "runtime", "redlatch"),
    "capi/include": ("redlatch",),
}
CORE = tuple(name[len("core/"):] for name in MAY_NAME if name.startswith("core/"))
# The machines of core/lock and core/session, by file and class. Each takes events and returns
# values, and knows nothing of the others; only the parts of LockClient, and Session, do.
MACHINES = {
    "lock/acquisition": "Acquisition",
    "lock/cleanup": "Cleanup",
    "lock/held_lease": "HeldLease",
    "lock/key_watch": "KeyWatch",
    "session/message_check": "MessageCheck",
    "lock/replication": "Replication",
    "lock/retention": "Retention",
    "lock/upgrade": "Upgrade",
    "lock/waitlist": "Waitlist",
}
MACHINE_FOLDERS = ("core/lock", "core/session")
CLIENT_FOLDER = "core/lock"
SESSION = "core/session/session"  # It owns MessageCheck.
# The only other files that may name machines: those of LockClient, of its parts and of its state.
# A file that needs a machine is a part of LockClient.
CLIENT_FILES = ("lock_client", "cleanups", "confirmations", "connecting", "leases",
                "leases_upgrading", "locks", "locks_moving", "moving", "requests",
                "requests_attaching", "requests_holding", "waiters", "waiters_callers",
                "waiters_retaining", "waiters_watching", "lock_state", "request")
MACHINE_HEADERS = tuple(f"{name}.h" for name in MACHINES)
CLIENT_ONLY = "only the files of LockClient know machines (CLIENT_FILES of tools/tidy.py)"
MACHINE_VALUES = "lock/lock_types.h"  # the values that machines share
ENCODER = "protocol/command.h"
# What else a machine may not name: LockClient, what it keeps, its queues and its encoder.
CLIENT_NAMES = (
    "LockClient|LockState|TokenRecord|Request|Lease|InFlight|Timed|TimerQueue|Output"
    "|LockService|protocol::Command"
)
# Users of the contract see nothing else of us.
CONTRACT_ONLY = ("cli", "examples", "bindings", "go", "java", "tests/capi", "tests/conformance")
CONTRACT = ("redlatch/redlatch.h", "redlatch/redlatch.hpp")
# Data, not code: any folder may read them.
LISTS = ("statuses.def", "options.def", "formats.def", "info_fields.def")

HTTP_SERVER = ("cli/src/http_server.cc", "cli/src/http_server.h")

# (headers, where the rule holds, where it does not, what is allowed)
HEADER_RULES = (
    (
        re.compile(r"hiredis/read\.h$"),
        ("",),
        ("core/resp", "tests", "bench"),
        "hiredis only in core/resp",
    ),
    (
        re.compile(r"hiredis/(?!read\.h$)"),
        ("",),
        ("tests", "bench"),
        "of hiredis only the parser, read.h, in core/resp",
    ),
    (
        re.compile(r"openssl/"),
        ("",),
        ("core/net", "tests", "bench"),
        "OpenSSL only in core/net",
    ),
    (
        re.compile(r"(sys/socket|netinet/.*|arpa/inet|netdb|sys/epoll)\.h$"),
        ("core", "capi", "cli", "bindings"),
        ("core/net", *HTTP_SERVER),
        "sockets only in core/net and the HTTP server of the command",
    ),
    (
        re.compile(r"(poll|sys/poll)\.h$"),
        ("core", "capi", "cli", "bindings"),
        ("core/host", "core/net", *HTTP_SERVER, "cli/src/line_writer.cc"),
        "sockets only in core/net, polls in core/host",
    ),
    (
        re.compile(r"(fcntl|unistd|pthread|dirent|sys/.*)\.h$"),
        ("core/base", "core/resp", "core/session", "core/operate", "core/config"),
        (),
        "no file, process or thread here: core/host has what the machine gives",
    ),
    (
        re.compile(r"(sys/stat\.h|dirent\.h|ctime|time\.h|sys/time\.h)$"),
        ("core/net", "core/runtime"),
        (),
        "no file or clock here: core/host has what the machine gives",
    ),
    (
        re.compile(
            r"(chrono|thread|mutex|shared_mutex|condition_variable|future|random|ctime"
            r"|time\.h|sys/time\.h|pthread\.h|unistd\.h)$"
        ),
        ("core/timing", "core/protocol", "core/sentinel", "core/session", "core/operate",
         "core/lock", "core/quorum", "core/cluster", "core/driver"),
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
    (
        re.compile(r"\b[Pp]art \d+ (o)f \d+\b"),
        "a class cut into files; a file has a name and a purpose of its own",
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
        unbreakable = unbreakable or under(path, HISTORY)
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
    most = MAX_LIBRARY_LINES if path.startswith(LIBRARY) else MAX_FILE_LINES
    if len(lines) > most and not generated and path not in LONG_FILES:
        yield most + 1, f"{len(lines)} lines in a file; at most {most}"


def check_includes(path, lines):
    folder = next((f for f in MAY_NAME if under(path, f)), None)
    if not folder and path.endswith((".cc", ".h")) and under(path, "core"):
        yield 1, "no rule says what this folder may name; add one to tools/tidy.py"
    contract_only = any(under(path, f) for f in CONTRACT_ONLY)
    is_client = is_of_client(path)
    for number, line in enumerate(lines, 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        name = found.group(1)
        for pattern, where, but_not, allowed in HEADER_RULES:
            inside = any(under(path, f) for f in where)
            if inside and not any(under(path, f) for f in but_not) and pattern.match(name):
                yield number, f"includes {name}; {allowed}"
        top = name.split("/")[0]
        if name in MACHINE_HEADERS and under(path, "core") and not (machine_of(path) or is_client):
            yield number, f"includes {name}; {CLIENT_ONLY}"
        ours = top in CORE or top in ("core", "capi", "redlatch", "..")
        if not ours or "/" not in name or os.path.basename(name) in LISTS:
            continue
        if contract_only and name not in CONTRACT:
            if top in ("..", "redlatch") or top in CORE + ("core", "capi"):
                yield number, f"includes {name}; only {' or '.join(CONTRACT)} of the library"
        elif folder and top not in MAY_NAME[folder]:
            allowed = ", ".join(MAY_NAME[folder])
            yield number, f"{folder} includes {name}; it may name only {allowed}"


INCLUDE = re.compile(r'\s*#\s*include\s*["<]([^">]+)[">]')


def machine_of(path):
    stem, suffix = os.path.splitext(path.removeprefix("core/"))
    return stem if path.startswith("core/") and suffix in C_SUFFIXES and stem in MACHINES else None


def is_of_client(path):
    stem = os.path.splitext(path)[0]
    folder, name = os.path.split(stem)
    return stem == SESSION or (folder == CLIENT_FOLDER and name in CLIENT_FILES)


def reached_headers(root, path):
    """(line of the first include, way) of each header of core that `path` includes at last."""
    found = {}
    open_ends = [(path, None, ())]
    while open_ends:
        at, line, way = open_ends.pop(0)
        full = os.path.join(root, at)
        if not os.path.isfile(full):
            continue
        with open(full, encoding="utf-8", errors="replace") as file:
            names = [(n, INCLUDE.match(text)) for n, text in enumerate(file, 1)]
        for number, name in ((n, m.group(1)) for n, m in names if m):
            is_list = os.path.basename(name) in LISTS
            if name.split("/")[0] in CORE and name not in found and not is_list:
                found[name] = (line or number, way + (name,))
                open_ends.append(("core/" + name, line or number, way + (name,)))
    return found.values()


def folders_below(folder):
    """The folders whose headers `folder` may reach, by whatever way."""
    below = set(MAY_NAME[folder])
    while True:
        more = set().union(*(MAY_NAME.get(f"core/{name}", ()) for name in below)) | below
        if more == below:
            return below
        below = more


def check_reach(root, path):
    """What comes by the header of a header is included as well."""
    folder = next((f for f in MAY_NAME if under(path, f)), None)
    machine = machine_of(path)
    if not folder or not path.endswith(C_SUFFIXES):
        return
    below = folders_below(folder)
    for line, way in reached_headers(root, path):
        by = " by " + " and ".join(way[:-1]) if len(way) > 1 else ""
        name = way[-1]
        if by and name.split("/")[0] not in below:
            yield line, f"reaches {name}{by}; {folder} may not"
        is_part = name.split("/")[0] in ("lock", "session")
        is_value = not is_part or name in (f"{machine}.h", MACHINE_VALUES)
        if machine and (not is_value or name == ENCODER):
            yield line, f"reaches {name}{by}; a machine includes values, no other part"


def check_names(path, text):
    folder = next((f for f in MAY_NAME if under(path, f)), None)
    if not folder or not path.endswith(C_SUFFIXES):
        return
    upward = [name for name in CORE if name not in MAY_NAME[folder] and name != "base"]
    rules = []
    if upward:
        full = rf"(?:::)?(?:redlatch::)?(?:{'|'.join(upward)})"
        rules.append((rf"(?<![\w:.>]){full}::\w+", "names"))
        rules.append((rf"\bnamespace\s+(?:\w+\s*=\s*)?{full}\b", "opens"))
    allowed = f"it may name only {', '.join(MAY_NAME[folder])}"
    code = blanked(text)
    for pattern, verb in rules:
        for found in re.finditer(pattern, code):
            yield code.count("\n", 0, found.start()) + 1, f"{verb} {found.group(0)}; {allowed}"
    yield from check_machine_names(path, code)


def check_machine_names(path, code):
    """In the files of core: only LockClient names a machine, and a machine names nothing else."""
    machine = machine_of(path)
    folder = os.path.dirname(path)
    is_header = path.endswith(".h") and folder in MACHINE_FOLDERS
    if is_header and not machine and re.search(r"const char \*check\(\) const", code):
        yield 1, "has a check() and is no machine of tools/tidy.py; add it to MACHINES"
    if is_of_client(path) or not under(path, "core"):
        return
    others = "|".join(name for stem, name in MACHINES.items() if stem != machine)
    if machine:
        pattern = rf"(?:::)?(?:redlatch::)?(?:(?:lock|session)::)?(?:{others}|{CLIENT_NAMES})\b"
        why = "a machine knows neither others nor LockClient"
    else:
        # Elsewhere these words may be names of something else.
        scope = "(?:lock::|session::)" + ("?" if folder in MACHINE_FOLDERS else "")
        pattern = rf"(?:::)?(?:redlatch::)?{scope}(?:{others})\b"
        why = CLIENT_ONLY
    for found in re.finditer(rf"(?<![\w:.>]){pattern}", code):
        yield code.count("\n", 0, found.start()) + 1, f"names {found.group(0)}; {why}"


def blanked(text):
    """The text with everything that may hold a stray brace replaced, line ends kept."""
    return words.BLANKED.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


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
        yield from check_reach(root, path)
        yield from check_names(path, text)
    if not is_generated(lines):
        yield from check_functions(path, text)
        yield from words.check_messages(path, text)
        yield from words.check_prose(path, text)
        yield from words.check_comments(path, text)
        yield from docstrings.check(path, text)
        yield from sentences.check(path, text)


def marked_patterns(root):
    """The patterns that .gitattributes marks as generated; None if there is no such file."""
    full = os.path.join(root, ATTRIBUTES)
    if not os.path.isfile(full):
        return None
    with open(full, encoding="utf-8") as file:
        rows = [line.split() for line in file if not line.startswith("#")]
    return [row[0] for row in rows if "linguist-generated" in row[1:]]


def is_marked(path, patterns):
    """As git matches: a pattern with a slash names the whole path, and `*` matches no slash."""
    return any(
        pathlib.PurePosixPath(path).match(pattern)
        and ("/" not in pattern or pattern.count("/") == path.count("/"))
        for pattern in patterns
    )


def check_attributes(root, paths):
    """Files with the head of a generated file are marked, and no others."""
    patterns = marked_patterns(root)
    if patterns is None:
        return
    for path in paths:
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            has_head = is_generated([line for _, line in zip(range(5), file)])
        marked = is_marked(path, patterns)
        if has_head and not marked:
            yield path, f"is generated; mark it in {ATTRIBUTES}"
        elif marked and not has_head and not path.endswith(HEADLESS):
            yield path, f"is marked in {ATTRIBUTES}; its head must say `DO NOT EDIT`"


def findings(root, only=()):
    paths = only or listed_files(root)
    for path in paths:
        for line, message in check_file(root, path):
            yield f"{path}:{line}: {message}"
    for path, message in check_attributes(root, paths):
        yield f"{path}:1: {message}"
    for path, line, message in class_sizes.check_classes(root, paths):
        yield f"{path}:{line}: {message}"


def found_in(files):
    with tempfile.TemporaryDirectory() as root:
        for path, content in files.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "wb") as file:
                file.write(content if isinstance(content, bytes) else content.encode())
        return list(findings(root))


def self_test():
    trees = [({path: text}, (part,) if part else ()) for path, text, part in tidy_planted.FILES]
    trees += tidy_planted.TREES
    failures = 0
    for files, expected in trees:
        found = found_in(files)
        is_found = all(any(part in line for line in found) for part in expected)
        if not is_found or len(found) != len(expected):
            failures += 1
            print(f"self-test: {', '.join(files)}: expected {expected}, found {found}")
    print(f"tidy --self-test: {len(trees) - failures} of {len(trees)} as expected")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description="Checks sizes, licences, includes and words.")
    parser.add_argument("files", nargs="*", metavar="FILE", help="from the root; default: all")
    parser.add_argument("--root", default=TOP)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--words", action="store_true")
    options = parser.parse_args()
    if options.words:
        words.print_words(options.root)
        return 0
    if options.self_test:
        return self_test()
    for name in options.files:
        if not os.path.isfile(os.path.join(options.root, name)):
            parser.error(f"FILE must be a file below {options.root} (got {name})")
    found = list(findings(options.root, options.files))
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

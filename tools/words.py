# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Words that texts for users avoid: what is refused, what is counted. Used by tidy.py.

CONTRIBUTING.md has the rules. A word is refused where it has no second meaning; the other words
are counted, and so are the sentences that open with a clause instead of their subject.
"""

import ast
import glob
import os
import re

# Comments, literals and the preprocessor, in C, C++, Go and Java.
BLANKED = re.compile(
    r"""//[^\n]*|/\*.*?\*/                                # comments
      |R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"         # raw strings
      |`[^`]*`                                            # raw strings of Go
      |"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'  # strings, characters
      |^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*                     # the preprocessor""",
    re.S | re.M | re.X,
)

NO_SECOND_MEANING = (
    r"somebody|nobody|anybody|everybody|whoever|whom|likewise|for\s+ever|(?<!there\s)is\s+none"
    r"|lets?\s+go"
    r"|by\s+TLS"
)
# Messages are few: these have no other meaning there.
REFUSED_IN_MESSAGES = re.compile(
    rf"\b({NO_SECOND_MEANING}|goes\s+on|mend(ed|s)?|given\s+back)\b", re.I
)
REFUSED_IN_PROSE = re.compile(rf"\b({NO_SECOND_MEANING}|but\s+for)\b", re.I)
COUNTED = re.compile(
    rf"\b({NO_SECOND_MEANING}|but\s+for|goes\s+on|told|stands|mend(ed|s)?)\b", re.I
)
# Comments of the library and the command: as prose, and no sentence opens with a clause.
REFUSED_IN_COMMENTS = re.compile(
    rf"\b({NO_SECOND_MEANING}|but\s+for|goes\s+on|told|mend(ed|s)?)\b", re.I
)
OPENERS = re.compile(r"(Who|Whoever|What|Whether|Of|Likewise)\b")

MESSAGES = ("core/", "capi/", "cli/", "embedded/", "bindings/", "python/src/", "go/", "java/")
MESSAGE_FILES = (".c", ".cc", ".cpp", ".h", ".hpp", ".go", ".java", ".def", ".py")
COMMENTED = ("core/", "capi/", "cli/")
PAGES = ("README.md", "SECURITY.md", "CONTRIBUTING.md", "HACKING.md")
HEADERS = "capi/include/redlatch/"


def is_prose(path):
    """A page of the manual, or a public header. docs/design has records, each of its day."""
    is_page = path in PAGES or re.fullmatch(r"docs/[^/]+\.md", path)
    return bool(is_page) or (path.startswith(HEADERS) and path.endswith((".h", ".hpp")))


def without(pattern, text):
    """The text without what matches, line ends kept."""
    flags = re.S | re.M
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", "", m.group(0)) or " ", text, flags=flags)


def prose(path, text):
    """What people read of a page or of a header's comments, on the lines on which it was."""
    if path.endswith(".md"):
        text = without(r"<!--.*?-->|^```.*?^```|^(?: {4}|\t)[^\n]*$|`[^`\n]*`", text)
        return re.sub(r"\]\([^)]*\)", "]", text)
    kept = [""] * (text.count("\n") + 1)
    for found in BLANKED.finditer(text):
        if found.group(0).startswith(("//", "/*")):
            first = text.count("\n", 0, found.start())
            for number, line in enumerate(found.group(0).split("\n"), first):
                kept[number] += " " + re.sub(r"^\s*(/\*+|\*+/?|///?<?)|\*/\s*$", "", line)
    return without(r"`[^`\n]*`", "\n".join(kept))


OPENING = re.compile(
    r"(?:\A|[.!?:;]\W*\s|\n\s*\n|\n\s*(?:[-*]|\d+\.)\s|\|)[\s*_\"'(]*(?=("
    + OPENERS.pattern
    + "))"
)


def openers(text):
    """The matches of sentences, cells and items that open with a clause."""
    text = without(r"^#+ [^\n]*$", text)
    return list(OPENING.finditer(text))


def script_comments(text):
    return re.sub(r"^(?:[^-\n]|-(?!-))*(?:--)?", "", text, flags=re.M)


def words_table(root):
    """Rows of (name, words, refused, openers); the last one is the total."""
    paths = [*PAGES[:1], *sorted(glob.glob("docs/*.md", root_dir=root))]
    headers = ("redlatch.h", "redlatch.hpp", "options.hpp", "mutex.hpp", "jobs.hpp")
    paths += [HEADERS + name for name in headers]
    rows = []
    for path in paths:
        if os.path.isfile(os.path.join(root, path)):
            with open(os.path.join(root, path), encoding="utf-8") as file:
                text = prose(path, file.read())
            count = len(re.findall(r"[A-Za-z][\w'-]*", text))
            rows.append((path, count, len(COUNTED.findall(text)), len(openers(text))))
    return rows + [("total", *(sum(row[i] for row in rows) for i in (1, 2, 3)))]


def print_words(root):
    print(f"{'page':42} {'words':>6}  per 1,000: refused openers")
    for name, count, refused, opened in words_table(root):
        per = 1000 / max(count, 1)
        print(f"{name:42} {count:6} {refused * per:19.1f} {opened * per:7.1f}")


def c_literals(text):
    for found in BLANKED.finditer(text):
        if found.group(0).startswith(('"', 'R"', "`")):
            yield text.count("\n", 0, found.start()) + 1, found.group(0)


def python_literals(text):
    """String literals that are no docstrings."""
    nodes = list(ast.walk(ast.parse(text)))
    docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


def check_messages(path, text):
    if not path.startswith(MESSAGES) or not path.endswith(MESSAGE_FILES):
        return
    if path.endswith("_test.go") or "/test/" in path:
        return
    for number, literal in (python_literals if path.endswith(".py") else c_literals)(text):
        found = REFUSED_IN_MESSAGES.search(literal)
        if found:
            yield number, f"`{found.group(0)}` in a message; name the part (docs/glossary.md)"


def check_prose(path, text):
    if not is_prose(path):
        return
    text = prose(path, text)
    for found in REFUSED_IN_PROSE.finditer(text):
        number = text.count("\n", 0, found.start()) + 1
        word = " ".join(found.group(0).split())
        yield number, f"`{word}` for people to read; name the part (CONTRIBUTING.md, plain English)"


def check_comments(path, text):
    if not path.startswith(COMMENTED) or is_prose(path):
        return
    if path.endswith(".lua"):
        text = script_comments(text)
    elif path.endswith((".c", ".cc", ".h", ".hpp", ".def")):
        text = prose(path, text)
    else:
        return
    for found in REFUSED_IN_COMMENTS.finditer(text):
        number = text.count("\n", 0, found.start()) + 1
        word = " ".join(found.group(0).split())
        yield number, f"`{word}` in a comment; name the part (CONTRIBUTING.md, plain English)"
    for found in openers(text):
        number = text.count("\n", 0, found.end()) + 1
        yield number, f"a comment opens with `{found.group(1)}`; start with the subject"

# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Checks the texts that an editor shows: docstrings, doc comments of Go, Javadoc. Used by tidy.py.

A sentence has at most 40 words and begins with its subject. No comment of these folders has a
refused word (words.py).
"""

import ast
import io
import re
import tokenize

import words

FOLDERS = ("python/src/redlatch/", "go/", "java/")
SUFFIXES = (".py", ".pyi", ".go", ".java")
MAX_WORDS = 40
# A doc comment of Go stands above these, or behind a field of theirs.
GO_DECLARATION = re.compile(r"(package|func|type|var|const)\b|\t[A-Z]\w*\b(?![.(])")
# Code is indented, behind a blank line; or in tags or backticks.
CODE = r"<pre>.*?</pre>|\{@code [^}]*\}|`[^`\n]*`|(?:(?<=\n\n)|\A)(?:(?: {4}|\t)[^\n]*(?:\n|\Z))+"
LINK = re.compile(r"\{@\w+\s+(\S+?)(\s[^}]*)?\}")  # of Javadoc, with its label
# A tag, a paragraph, an item and a row of arguments begin a sentence.
PART = re.compile(r"^[ ]*(?=@\w|[-*] |\w+ {2,})|</?(?:p|ul|ol|li)>", re.M)
END = re.compile(r"[.!?](?=[\s\"')]|\Z)|\n[ \t]*\n|\Z")


def is_checked(path):
    is_test = path.endswith("_test.go") or "/test/" in path
    return path.startswith(FOLDERS) and path.endswith(SUFFIXES) and not is_test


def python_texts(text):
    """Rows of (first line, text, whether it is a docstring)."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                indent = " " * node.col_offset
                yield node.lineno, re.sub(rf"^{indent}", "", node.value.value, flags=re.M), True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string[1:], False


def java_texts(text):
    """Rows of (first line, text, whether it is Javadoc)."""
    for found in words.BLANKED.finditer(text):
        comment = found.group(0)
        if comment.startswith(("//", "/*")):
            bare = re.sub(r"^\s*(/\*+|\*+/|\*|//) ?|\*/\s*$", "", comment, flags=re.M)
            yield text.count("\n", 0, found.start()) + 1, bare, comment.startswith("/**")


def go_texts(text):
    """Rows of (first line, text, whether it is a doc comment)."""
    block = []
    for number, line in enumerate(text.split("\n"), 1):
        whole = re.match(r"\t*// ?(.*)", line)
        if whole:
            block.append(whole.group(1))
            continue
        is_doc = bool(GO_DECLARATION.match(line))
        if block:
            yield number - len(block), "\n".join(block), is_doc
            block = []
        for found in words.BLANKED.finditer(line):
            if found.group(0).startswith("//"):
                yield number, found.group(0)[2:], is_doc


def prose(text):
    """The text without code, on the lines on which it was."""
    text = words.without(CODE, text)
    text = LINK.sub(lambda m: m.group(2) or m.group(1), text).replace("is None", "is 0")
    return PART.sub(". ", text)


def sentences(text):
    """Rows of (line in the text, number of words, first words)."""
    begin = 0
    for end in END.finditer(text):
        sentence = text[begin : end.end()]
        found = re.findall(r"[A-Za-z0-9][\w'.-]*", sentence)
        first = text.count("\n", 0, end.end() - len(sentence.lstrip(" \t\n.")))
        yield first, len(found), " ".join(found[:4])
        begin = end.end()


def check(path, text):
    """Findings of a file, as (line, message)."""
    if not is_checked(path):
        return
    texts = {"go": go_texts, "java": java_texts}.get(path.rsplit(".", 1)[1], python_texts)
    for first, comment, is_doc in texts(text):
        read = prose(comment)
        for found in words.REFUSED_IN_COMMENTS.finditer(read):
            word = " ".join(found.group(0).split())
            number = first + read.count("\n", 0, found.start())
            yield number, f"`{word}` in a comment; name the part (CONTRIBUTING.md, plain English)"
        for found in words.openers(read) if is_doc else ():
            number = first + read.count("\n", 0, found.end())
            yield number, f"a docstring opens with `{found.group(1)}`; start with the subject"
        for line, count, beginning in sentences(read) if is_doc else ():
            if count > MAX_WORDS:
                yield first + line, f"{count} words in `{beginning} ..`; at most {MAX_WORDS}"

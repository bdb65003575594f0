# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Sentences of the pages and headers that users read first: at most 40 words. Used by tidy.py.

A sentence ends at its full stop, or with its paragraph, list item, table cell or row of a comment.
Code between backquotes is one word; a block of code is no sentence.
"""

import re

import words

MAX_WORDS = 40
PAGES = ("docs/guarantees.md", "docs/choosing.md", "docs/python.md")
BLOCK_CODE = r"<!--.*?-->|^```.*?^```|^(?: {4}|\t)[^\n]*$"
CODE = re.compile(r"`[^`\n]+(?:\n[^`\n]+)?`")
TARGET = re.compile(r"\]\([^)]*\)")  # of a link
ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s")
# In a comment also: a tag, and a row `NAME   text`.
ROW = re.compile(r"\s*(?:(?:[-*]|\d+\.)\s|@\w+|[\w:/.+*,() -]*\w\S*\s{2,}\S)")
END = re.compile(r"(?<=[.!?])(?<!\.\.)[\"'*_)\]]*\s+")
WORD = re.compile(r"\S*\w\S*")


def is_checked(path):
    return path in PAGES or (path.startswith(words.HEADERS) and path.endswith((".h", ".hpp")))


def same_lines(pattern, word, text):
    """The text with `word` for each match, line ends kept."""
    return pattern.sub(lambda found: word + "\n" * found.group(0).count("\n"), text)


def page_lines(text):
    """Rows of (line, text, whether a block begins here)."""
    text = same_lines(CODE, "X", words.without(BLOCK_CODE, text))
    text = same_lines(TARGET, "]", text)
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("|"):
            for cell in line.split("|"):
                yield number, cell, True
        else:
            yield number, line, not line.strip() or line.startswith("#") or ITEM.match(line)


def comment_lines(text):
    """As page_lines(), of the comments of a header."""
    last = -1
    for found in words.BLANKED.finditer(text):
        comment = found.group(0)
        if not comment.startswith(("//", "/*")):
            continue
        first = text.count("\n", 0, found.start()) + 1
        follows = comment.startswith("//") and first == last + 1
        for number, line in enumerate(comment.split("\n"), first):
            line = CODE.sub("X", re.sub(r"^\s*(/\*+<?|\*+/?|///?<?) ?|\*/\s*$", "", line))
            begins = number == first and not follows
            yield number, line, begins or not line.strip() or ROW.match(line)
        last = first + comment.count("\n")


def block_sentences(block):
    """Rows of (line, number of words) of the lines of one block."""
    text = "\n".join(line for _, line in block)
    begin = 0
    for end in [*(found.end() for found in END.finditer(text)), len(text)]:
        sentence = text[begin:end]
        first = begin + len(sentence) - len(sentence.lstrip())
        yield block[text.count("\n", 0, min(first, len(text) - 1))][0], len(WORD.findall(sentence))
        begin = end


def sentences(path, text):
    """Rows of (line, number of words)."""
    block = []
    lines = page_lines(text) if path.endswith(".md") else comment_lines(text)
    for number, line, begins in [*lines, (0, "", True)]:
        if begins and block:
            yield from block_sentences(block)
            block = []
        block.append((number, line))


def check(path, text):
    """Findings of a file, as (line, message)."""
    if is_checked(path):
        for number, count in sentences(path, text):
            if count > MAX_WORDS:
                yield number, f"{count} words in a sentence; at most {MAX_WORDS}: split or list it"

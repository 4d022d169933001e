"""The text of a program without what is only for people: comments, blank lines, spaces at ends."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator
from contextlib import suppress

from tree_sitter import Node, Parser

from pml.processors.capabilities.typescript_program import grammar
from pml.schemas.structure import Language

_Place = tuple[int, int, int]
"""A line from 0, and the bytes of it, from the first to before the last, that a comment has."""


def bare_source(source: str, language: Language) -> str:
    """The same for programs that differ in nothing but what their readers are told; it need not run.

    Args:
        source: a program of its language, as `analysing.read` takes it.
    """
    lines = [line.encode("utf-8", "replace") for line in source.split("\n")]
    found = _of_python(source) if language == "python" else _of_typescript(source)
    for line, start, end in sorted(found, reverse=True):
        lines[line] = lines[line][:start] + lines[line][end:]
    return "\n".join(line.decode("utf-8", "replace").rstrip() for line in lines if line.strip())


def _of_python(source: str) -> Iterator[_Place]:
    lines = source.split("\n")
    # What the parser takes and the tokenizer does not has odd ends of lines; then its comments count.
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                line = token.start[0] - 1
                before = len(lines[line][: token.start[1]].encode("utf-8", "replace"))
                yield line, before, before + len(token.string.encode("utf-8", "replace"))


def _of_typescript(source: str) -> Iterator[_Place]:
    lines = [line.encode("utf-8", "replace") for line in source.split("\n")]
    waiting = [Parser(grammar()).parse(b"\n".join(lines)).root_node]
    while waiting:
        node = waiting.pop()
        if node.type == "comment":
            yield from _rows(node, lines)
        waiting.extend(node.children)


def _rows(node: Node, lines: list[bytes]) -> Iterator[_Place]:
    first, last = node.start_point, node.end_point
    for row in range(first.row, last.row + 1):
        start = first.column if row == first.row else 0
        yield row, start, last.column if row == last.row else len(lines[row])

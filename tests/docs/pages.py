"""The pages of the documentation, and what is written in them: links, blocks, commands, tables."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterator
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def read(name: str) -> str:
    """The text of a page, by its path from the root."""
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    """The fenced blocks of a page in this language."""
    return [text for kind, text in _FENCE.findall(read(name)) if kind == language]


def prose(name: str) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("", read(name))


def links(name: str) -> list[str]:
    """The targets of a page's links."""
    return _LINK.findall(prose(name))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    return {_slug(heading) for heading in _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))}


def _slug(heading: str) -> str:
    text = unicodedata.normalize("NFC", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def console_commands(name: str) -> Iterator[list[str]]:
    """Each `pml …` of a page's console blocks, in words, without variables before it and output behind it."""
    for block in blocks(name, "console"):
        for line in re.findall(r"^\$ (.+)$", block, re.MULTILINE):
            for command in _split(line):
                if command[0] == "pml":
                    yield command


def _split(line: str) -> Iterator[list[str]]:
    words: list[str] = []
    for word in shlex.split(line, comments=True):
        if word in {"&&", ">", "|"}:
            if words:
                yield words
            words = []
        elif words or not re.fullmatch(r"[A-Z_]+=.*", word):
            words.append(word)
    if words:
        yield words


def mentioned_commands(name: str) -> Iterator[list[str]]:
    """Each `pml …` in a page's prose; `pml run list|show` counts as two."""
    for text in _INLINE.findall(prose(name)):
        plain = re.sub(r"^(?:[A-Z_]+=\S+ )+", "", text)
        if re.match(r"pml( |$)", plain):
            words = [
                [word] if word.startswith(("'", '"')) else word.split("|") for word in shlex.split(plain)
            ]
            yield from (list(choice) for choice in product(*words))


def table(name: str, first: str) -> list[dict[str, str]]:
    """The rows of all tables of a page whose first column has this title, by title of column."""
    found: list[dict[str, str]] = []
    titles: list[str] = []
    for line in [*prose(name).splitlines(), ""]:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            titles = []
        elif not titles:
            titles = cells
        elif titles[0] == first and not set(line) <= set("|- "):
            found.append(dict(zip(titles, cells, strict=True)))
    return found


def codes(cell: str) -> list[str]:
    """What stands in back-ticks in a cell."""
    return _INLINE.findall(cell)

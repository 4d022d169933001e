"""A text as the words that are compared: names taken apart, endings of grammar cut off."""

from __future__ import annotations

import re
from functools import lru_cache
from unicodedata import normalize

# A capital after a small letter or digit, or before one, begins a word: getUserID, HTTPServer.
_PART = re.compile(r"[A-Z]+(?![a-zß-öø-ɏ])|[A-Z]?[a-zß-öø-ɏ]+|[0-9]+|[^\W\d_A-Za-zß-öø-ɏ]+")
# Blanks before a word are looked at from the first of them alone: clients send what they like.
_CLAUSE = re.compile(r"(?<=[.!?;])\s+|\n+|,\s+|(?<![^\S\n])\s++(?:and\s+then|and|then)\s+", re.IGNORECASE)
_ACCENT = re.compile("[\u0300-\u036f]")
_STEMS_KEPT = 65_536
# Text of an intent that is looked at; a longer one is a document, not a request.
TEXT_CHARACTERS = 20_000
CLAUSES = 24
CLAUSE_WORDS = 2

_STOP_WORDS = """
a an and are as at be been by can could do does for from had has have how i if in into is it its me
my of on or our please so than that the their them then there these this to us was we were what when
which will with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


def words(text: str) -> list[str]:
    """The stems of a text in order, without words that every text has; `create_userID` gives three."""
    parts = (part.lower() for part in _parts(text[:TEXT_CHARACTERS]))
    return [stem(part) for part in parts if part not in STOP_WORDS]


def spoken(name: str) -> str:
    """A name as it is said: `files:readFile_v2` is `files read file v 2`."""
    return " ".join(part.lower() for part in _parts(name))


def clauses(text: str) -> list[str]:
    """The parts of an intent that ask for one thing each; empty where there are fewer than two."""
    found = [
        part for part in _CLAUSE.split(text[:TEXT_CHARACTERS]) if part and len(words(part)) >= CLAUSE_WORDS
    ]
    return found[:CLAUSES] if len(found) > 1 else []


@lru_cache(_STEMS_KEPT)
def stem(word: str) -> str:
    """The word without a plural, -ing, -ed or last e: so little that two rarely become one by mistake."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return stem(word[:-1])
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return _undoubled(word.removesuffix(ending))
    return word.removesuffix("e") if len(word) > 4 else word


def _undoubled(root: str) -> str:
    """`runn` is `run`; `call` and `pass` stay."""
    return root[:-1] if root[-1] == root[-2] and root[-1] not in "lsz" else root


def _parts(text: str) -> list[str]:
    """Letters of one kind, or digits, that belong together; an accent makes no other letter."""
    plain = text if text.isascii() else _ACCENT.sub("", normalize("NFKD", text))
    found: list[str] = _PART.findall(plain)
    return found

"""How much of what a tool is called a text says: one that says all of it names the tool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pml.processors.discovery.lexical import rarity
from pml.processors.discovery.words import words

# What a description begins with before this is the name in words (`discovery.documents`).
_NAME_ENDS = ". "


def titles(descriptions: Sequence[str]) -> dict[str, tuple[list[int], list[float]]]:
    """Of each word the descriptions, numbered in the order given, whose names have it, and which share of a
    name it is; rare words count more. The shares of a name add up to 1.
    """
    named = [sorted(set(words(text.partition(_NAME_ENDS)[0]))) for text in descriptions]
    named_by = Counter(word for title in named for word in title)
    rare = {word: rarity(len(named), count) for word, count in named_by.items()}
    postings: dict[str, tuple[list[int], list[float]]] = {word: ([], []) for word in rare}
    for number, title in enumerate(named):
        total = sum(rare[word] for word in title)
        for word in title:
            numbers, shares = postings[word]
            numbers.append(number)
            shares.append(rare[word] / total)
    return postings

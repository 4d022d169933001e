"""Names that tools use for the same thing (DESIGN §6, Provides edges). Symmetric, not transitive."""

from __future__ import annotations

_ALIASES: dict[str, tuple[str, ...]] = {
    "text": ("content",),
    "content": ("text", "data", "body", "payload", "json", "input"),
    "path": ("file", "filepath", "file_path", "location"),
    "url": ("uri", "href", "link", "endpoint"),
    "result": ("output", "response", "data", "value"),
}

PAIRS: frozenset[frozenset[str]] = frozenset(
    frozenset({name, alias}) for name, aliases in _ALIASES.items() for alias in aliases
)


def same_name(one: str, other: str) -> bool:
    """Whether two fields are called the same, or by names that a pair says mean the same."""
    return one == other or frozenset({one, other}) in PAIRS


def names_alike(name: str) -> tuple[str, ...]:
    """All names that are `same_name` as one, itself first."""
    others = sorted(other for pair in PAIRS if name in pair for other in pair if other != name)
    return (name, *others)

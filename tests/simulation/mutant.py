"""What a mutant is: the real code with one rule broken."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Patch = tuple[Any, str, Any]


@dataclass(frozen=True)
class Mutant:
    """One broken rule.

    Attributes:
        rule: the condition of DESIGN §4, or the rule of §2, that it breaks.
        plots: the plays in which it may show, by name; they are played in turn.
        within: the number of seeds within which it has to be found.
        patches: what is replaced by what.
    """

    name: str
    rule: str
    plots: tuple[str, ...]
    within: int
    patches: Callable[[], list[Patch]]


@contextmanager
def broken(mutant: Mutant) -> Iterator[None]:
    """The real code with this rule broken, everywhere that it was imported to."""
    undo: list[Patch] = []
    for owner, name, other in mutant.patches():
        original = getattr(owner, name)
        places = [(owner, name)] if isinstance(owner, type) else list(_importers(original))
        for place, attribute in places:
            undo.append((place, attribute, vars(place)[attribute]))
            setattr(place, attribute, other)
    try:
        yield
    finally:
        for place, attribute, value in reversed(undo):
            setattr(place, attribute, value)


def _importers(original: Any) -> Iterator[tuple[Any, str]]:
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("pml."):
            yield from ((module, name) for name, value in vars(module).items() if value is original)

"""The survivors that are known, each with the reason why it may live."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import yaml

from tests.mutation.hunting import Verdict

Reasons = dict[str, str]


def load(path: Path) -> Reasons:
    """The reason of each listed mutant, by its name."""
    groups = yaml.safe_load(path.read_text()) if path.exists() else None
    return {name: group["reason"] for group in groups or [] for name in group["mutants"]}


def gone(reasons: Reasons, names: Iterable[str]) -> list[str]:
    """What is listed and is no mutant any more."""
    return sorted(reasons.keys() - set(names))


def noticed(reasons: Reasons, verdicts: Iterable[Verdict]) -> list[str]:
    """What is listed and is killed now."""
    return sorted(
        verdict.mutant.name for verdict in verdicts if verdict.killed and verdict.mutant.name in reasons
    )

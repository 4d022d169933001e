"""What a replay found: of each projection how much was compared, and the first difference."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

import orjson

SHOWN_MAX = 120
NONE = "none"
# A partition or an offset that cannot be read any more.
UNKNOWN = -1
# What an event should be that nothing can be made of.
FOLDABLE = "one that can be folded"
Verdict = Literal["same", "different", "not compared"]


class Place(NamedTuple):
    """Where something lies in the log, and what it is called."""

    partition: int
    offset: int
    key: str


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the log and a projection disagree; `offset` is that of the log."""

    projection: str
    partition: int
    offset: int
    key: str
    field: str
    expected: str
    found: str

    @property
    def lies(self) -> tuple[int, int]:
        """Partition and offset."""
        return self.partition, self.offset

    def line(self) -> str:
        """It in one line for a person."""
        where = f"partition {self.partition} offset {self.offset} ({self.key})"
        if UNKNOWN in (self.partition, self.offset):
            where = self.key
        return f"{self.projection}: {where}, {self.field}: expected {self.expected}, found {self.found}"


@dataclass(slots=True)
class Comparison:
    """One projection: what was folded, compared, found different, and why something was not compared.

    `first` is the difference that lies first in the order of partition and offset; `remarks` counts what is
    said besides, by its text, in which `{}` stands for how often.
    """

    projection: str
    folded: int = 0
    compared: int = 0
    differences: int = 0
    first: Difference | None = None
    remarks: dict[str, int] = field(default_factory=dict)

    def differs(self, place: Place, field_name: str, expected: Any, found: Any) -> None:
        """Count a difference; the first one is kept."""
        self.differences += 1
        if self.first is None or place[:2] < self.first.lies:
            self.first = Difference(self.projection, *place, field_name, *shown(expected, found))

    def remark(self, text: str, count: int = 1) -> None:
        """Say something besides, `{}` in it for how often; nothing where that is 0."""
        if count:
            self.remarks[text] = self.remarks.get(text, 0) + count

    def take(self, other: Comparison) -> None:
        """Add what was found of the same projection in another part of the log."""
        self.folded += other.folded
        self.compared += other.compared
        self.differences += other.differences
        for text, count in other.remarks.items():
            self.remark(text, count)
        if other.first is not None and (self.first is None or other.first.lies < self.first.lies):
            self.first = other.first

    @property
    def notes(self) -> list[str]:
        """The remarks as texts."""
        return [text.format(count) for text, count in self.remarks.items()]

    @property
    def verdict(self) -> Verdict:
        """`same` only where something was compared."""
        if self.differences:
            return "different"
        return "same" if self.compared else "not compared"

    def as_dict(self) -> dict[str, Any]:
        """What `--json` prints of it."""
        told = {name: value for name, value in asdict(self).items() if name != "remarks"}
        return {**told, "notes": self.notes, "verdict": self.verdict}


def end_of_log(end: int) -> str:
    """What is found in place of an event from `end` on."""
    return f"none: the log ends at {end}"


def json_difference(name: str, expected: str, found: str) -> tuple[str, str, str]:
    """Where two JSON texts part first, as `data.error.code`, and what each has there, `none` for nothing.

    What is found may be whatever somebody wrote; where it is no JSON, both texts are named whole.
    """
    try:
        one, other, path = orjson.loads(expected), orjson.loads(found), [name]
    except orjson.JSONDecodeError:
        return name, expected, found
    while isinstance(one, dict) and isinstance(other, dict):
        keys = [key for key in sorted({*one, *other}) if one.get(key, NONE) != other.get(key, NONE)]
        if not keys:  # the same values in another order, or written otherwise
            return name, expected, found
        path.append(keys[0])
        one, other = one.get(keys[0], NONE), other.get(keys[0], NONE)
    return ".".join(path), _json(one), _json(other)


def _json(value: Any) -> str:
    return NONE if value is NONE else orjson.dumps(value).decode()


def shown(expected: Any, found: Any) -> tuple[str, str]:
    """Both values as short texts that begin shortly before they part."""
    texts = _text(expected), _text(found)
    parted = next((at for at, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts)))
    start = max(0, parted - SHOWN_MAX // 2)
    return _cut(texts[0], start), _cut(texts[1], start)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _cut(text: str, start: int) -> str:
    piece = text[start : start + SHOWN_MAX]
    return ("…" if start else "") + piece + ("…" if start + SHOWN_MAX < len(text) else "")

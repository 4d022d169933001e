"""The ways in which data sets are read: which one, and what of the request is visible before a call."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import typer

from pml.streams.learning.data_sets import VISIBLE, Row, Visible


def _own_turn(row: Row, place: int) -> str:
    """The user's turns up to the one that asks for the call; after the last call no other one is known."""
    last = min(place, len(row["tasks"]) - 1)
    return " ".join(row["turns"][: row["tasks"][last]["turn"] + 1])


def _intent(row: Row, place: int) -> str:
    return str(row["intent"])


@dataclass(frozen=True, slots=True)
class Way:
    """A way of reading one data set: its folder, and what of the request is visible."""

    folder: str
    visible: Visible


# What an agent's client could have passed, and where the same set was also read with more of it visible.
WAYS: Mapping[str, Way] = {
    **{name: Way(name, visible) for name, visible in VISIBLE.items()},
    "bfcl_multi_turn, own turn": Way(
        "bfcl_multi_turn", Visible("the user's turns up to the call's own", _own_turn)
    ),
    "api_bank, all turns": Way(
        "api_bank", Visible("all turns of the user, also later ones (the data keeps none apart)", _intent)
    ),
    "tau, script": Way("tau", Visible("the user's script, which no agent sees at once", _intent)),
}


def ways_named(sets: str, known: Collection[str]) -> tuple[str, ...]:
    """All of the known ones that begin with one of the names: a set is read in several ways.

    Args:
        sets: names, with commas; empty: all.

    Raises:
        typer.BadParameter: nothing begins with one of them.
    """
    chosen = [name.strip() for name in sets.split(",")] if sets else [""]
    unknown = [name for name in chosen if not any(way.startswith(name) for way in known)]
    if unknown:
        raise typer.BadParameter(f"no set {unknown[0]}: there are {'; '.join(known)}")
    return tuple(way for way in known if way.startswith(tuple(chosen)))

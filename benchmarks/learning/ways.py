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
    """The known ones with one of the names, or that begin with it: a set is read in several ways.

    Args:
        sets: names, with commas, which a name may have itself (`tau, script`); empty: all.

    Raises:
        typer.BadParameter: nothing begins with one of them.
    """
    whole, rest = _whole_names(sets, known)
    beginnings = [name.strip() for name in rest.split(",") if name.strip()]
    unknown = [name for name in beginnings if not any(way.startswith(name) for way in known)]
    if unknown:
        raise typer.BadParameter(f"no set {unknown[0]}: there are {'; '.join(known)}")
    if not (whole or beginnings):
        return tuple(known)
    return tuple(way for way in known if way in whole or way.startswith(tuple(beginnings)))


def _whole_names(sets: str, known: Collection[str]) -> tuple[set[str], str]:
    """The names with a comma that are there as a whole, and what is left without them."""
    found = {name for name in known if "," in name and name in sets}
    for name in found:
        sets = sets.replace(name, "")
    return found, sets

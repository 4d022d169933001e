"""The ways in which data sets are read: which one, and what of the request is visible before a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pml.streams.learning.data_sets import VISIBLE, Row, Visible


def _own_turn(row: Row, place: int) -> str:
    """The user's turns up to the one that asks for the call."""
    return " ".join(row["turns"][: row["tasks"][place]["turn"] + 1])


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

"""What is played on a stack and on the clock: recorded sessions, and what a model learns of before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from benchmarks.end_to_end.clock import Call, key_of
from benchmarks.end_to_end.foreseen import SERVER, Recorded
from benchmarks.end_to_end.times import MEDIAN_S, drawn_s
from benchmarks.learning.argument_sets import argument_set
from benchmarks.learning.ways import WAYS
from pml.processors.learning.judging import FOLDS
from pml.processors.learning.known_sessions import KnownSession
from pml.processors.learning.scene import Past
from pml.processors.learning.splits import folds
from pml.streams.learning.data_sets import recorded, rows_of


@dataclass(frozen=True, slots=True)
class Session:
    """A recorded session that is played: its calls, the thought before each, and what the client tells.

    `requests` has for each call what is visible of the request when it has ended.
    """

    name: str
    made: tuple[Past, ...]
    thoughts_s: tuple[float, ...]
    requests: tuple[str, ...]

    @property
    def keys(self) -> tuple[bytes, ...]:
        """What each call's result is kept under."""
        return tuple(key_of(each.name, each.arguments) for each in self.made)

    @property
    def results(self) -> dict[bytes, bytes]:
        """What its calls give, by what they are kept under."""
        return dict(self._given)

    @property
    def agrees(self) -> bool:
        """Whether no call in it gives one result and then another."""
        return len(self.results) == len(set(self._given))

    @property
    def _given(self) -> list[tuple[bytes, bytes]]:
        given_back = (orjson.dumps(each.result, option=orjson.OPT_SORT_KEYS) for each in self.made)
        return list(zip(self.keys, given_back, strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class Play:
    """What is played: sessions, whether a tool only reads, what tools take and say of themselves, and what
    the model learns of.

    `groups` int64: which of these sessions are kept on one side, as the data set says; those that are played
    are of other groups.
    """

    sessions: Sequence[Session]
    reads: dict[str, bool]
    schemas: dict[str, Any]
    descriptions: dict[str, str]
    learned_of: Sequence[KnownSession]
    groups: NDArray[np.int64]
    seed: int

    @property
    def parts(self) -> list[Play]:
        """What can be played at a time: sessions in which the same call gives the same result.

        A server knows neither sessions nor what was called before. Each session is in the first part that it
        agrees with.
        """
        results: list[dict[bytes, bytes]] = []
        sessions: list[list[Session]] = []
        for session in self.sessions:
            own = session.results
            agreeing = (number for number, known in enumerate(results) if _agree(known, own))
            place = next(agreeing, len(results))
            if place == len(results):
                results.append({})
                sessions.append([])
            results[place] |= own
            sessions[place].append(session)
        return [replace(self, sessions=each) for each in sessions]

    def calls(self, session: Session) -> tuple[Call, ...]:
        """The session as the clock plays it."""
        told = zip(session.made, session.keys, session.thoughts_s, strict=True)
        return tuple(
            Call(each.name, key, self.reads[each.name], drawn_s(self.seed, key), thought_s)
            for each, key, thought_s in told
        )


def play_of(folder: Path, name: str, seed: int, most: int, number: int = 0) -> Play:
    """Sessions of one fold to play, drawn with the seed, and those of the others to learn of."""
    data = argument_set(folder, name)
    told = list(rows_of(folder / WAYS[name].folder, "tools.jsonl"))
    known = Recorded(data, {tool["tool_id"]: tool.get("read_only") for tool in told}, seed)
    groups = recorded(folder, WAYS[name].folder).sessions.traces.groups
    fold = folds(groups, FOLDS, seed)
    tools = {each.name for past in data.sessions for each in past} | data.schemas.keys()
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(fold == number)).tolist()
    sessions = (_session(known, row) for row in rows if _complete(known, row))
    return Play(
        sessions=list(islice((session for session in sessions if session.agrees), most)),
        reads={tool: known.safe(tool) for tool in sorted(tools)},
        schemas={tool: data.schemas.get(tool) for tool in sorted(tools)},
        descriptions={tool["tool_id"]: tool.get("description") or "" for tool in told},
        learned_of=[_known(known, row) for row in np.flatnonzero(fold != number).tolist()],
        groups=groups[fold != number],
        seed=seed,
    )


def _session(known: Recorded, row: int) -> Session:
    thoughts_s = tuple(call.thought_s for call in known.calls(row))
    return Session(f"s{row}", known.made(row), thoughts_s, _texts(known, row)[1:])


def _texts(known: Recorded, row: int) -> tuple[str, ...]:
    """What is visible before each call of a session, and after the last."""
    data = known.data
    return (*data.requests[row], data.end_texts[row])


def _complete(known: Recorded, row: int) -> bool:
    """Whether every call has what its tool says that it requires; others are refused before they are made."""
    required = ((known.data.schemas.get(each.name) or {}).get("required", ()) for each in known.made(row))
    return all(
        each.arguments.keys() >= set(names) for each, names in zip(known.made(row), required, strict=True)
    )


def _known(known: Recorded, row: int) -> KnownSession:
    """A session as ClickHouse would tell it: what ran were tools of a server, which gave objects."""
    made = [replace(each, name=f"{SERVER}:{each.name}", result=given(each)) for each in known.made(row)]
    told = _texts(known, row)[1:]
    return KnownSession(tuple(made), (told[0], *told[:-1]), row, (f"s{row}", 0), told[-1])


def _agree(known: dict[bytes, bytes], own: dict[bytes, bytes]) -> bool:
    return all(known.get(key, value) == value for key, value in own.items())


def server_file(play: Play) -> bytes:
    """What `benchmarks.servers.recorded` is started with."""
    tools = [
        {
            "name": tool,
            "description": play.descriptions.get(tool, ""),
            "reads": reads,
            "input_schema": play.schemas[tool],
        }
        for tool, reads in play.reads.items()
    ]
    results = {
        key_of(each.name, each.arguments).decode(): given(each)
        for session in play.sessions
        for each in session.made
    }
    return orjson.dumps({"seed": play.seed, "median_s": MEDIAN_S, "tools": tools, "results": results})


def given(call: Past) -> dict[str, Any]:
    """A result as structured content, which is an object."""
    return (
        call.result
        if isinstance(call.result, dict)
        else {}
        if call.result is None
        else {"value": call.result}
    )

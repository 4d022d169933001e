"""What is played on a stack and on the clock: recorded sessions, and what a model learns of before."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from benchmarks.end_to_end.clock import Call, key_of
from benchmarks.end_to_end.times import MEDIAN_S, drawn_s
from benchmarks.learning.argument_sets import ArgumentSet, argument_set
from benchmarks.learning.ways import WAYS
from benchmarks.speculation.conversion import is_safe
from benchmarks.speculation.sample import DECISION_S
from pml.processors.learning.judging import FOLDS
from pml.processors.learning.known_sessions import KnownSession
from pml.processors.learning.scene import Past
from pml.processors.learning.splits import folds
from pml.streams.learning.data_sets import rows_of

SERVER = "recorded"

ReadOnly = Mapping[str, bool | None]


@dataclass(frozen=True, slots=True)
class Session:
    """A recorded session that is played: its calls, the thought before each, and what the client tells.

    `requests` has for each call what is visible of the request when it has ended. By `trace_id`, drawn with
    the seed, the server knows of which session a call is.
    """

    name: str
    trace_id: str
    made: tuple[Past, ...]
    thoughts_s: tuple[float, ...]
    requests: tuple[str, ...]

    @property
    def keys(self) -> tuple[bytes, ...]:
        """What each call's result is kept under."""
        return tuple(key_of(each.name, each.arguments) for each in self.made)

    @property
    def agrees(self) -> bool:
        """Whether no call in it gives one result and then another."""
        results = (orjson.dumps(each.result, option=orjson.OPT_SORT_KEYS) for each in self.made)
        return len(set(self.keys)) == len(set(zip(self.keys, results, strict=True)))


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

    def calls(self, session: Session) -> tuple[Call, ...]:
        """The session as the clock plays it."""
        told = zip(session.made, session.keys, session.thoughts_s, strict=True)
        return tuple(
            Call(each.name, key, self.reads[each.name], drawn_s(session.trace_id, key), thought_s)
            for each, key, thought_s in told
        )


def play_of(folder: Path, name: str, seed: int, most: int | None = None, number: int = 0) -> Play:
    """Sessions of one fold to play, drawn with the seed, and those of the others to learn of.

    At most so many; None: all that a server can answer.
    """
    data = argument_set(folder, name)
    told = list(rows_of(folder / WAYS[name].folder, "tools.jsonl"))
    read_only: ReadOnly = {tool["tool_id"]: tool.get("read_only") for tool in told}
    fold = folds(data.groups, FOLDS, seed)
    tools = sorted({each.name for past in data.sessions for each in past} | data.schemas.keys())
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(fold == number)).tolist()
    sessions = (_session(data, row, seed) for row in rows if _complete(data, row))
    return Play(
        sessions=list(islice((session for session in sessions if session.agrees), most)),
        reads={tool: is_safe(WAYS[name].folder, tool, read_only.get(tool)) for tool in tools},
        schemas={tool: data.schemas.get(tool) for tool in tools},
        descriptions={tool["tool_id"]: tool.get("description") or "" for tool in told},
        learned_of=[_known(data, row) for row in np.flatnonzero(fold != number).tolist()],
        groups=data.groups[fold != number],
        seed=seed,
    )


def _session(data: ArgumentSet, row: int, seed: int) -> Session:
    made = data.sessions[row]
    # However much is visible of a session, its thoughts take the same time.
    drawn = random.Random(f"{seed}/{WAYS[data.name].folder}/{row}")
    thoughts_s = tuple(drawn.uniform(*DECISION_S) for _ in made)
    return Session(f"s{row}", f"{drawn.getrandbits(128):032x}", made, thoughts_s, _texts(data, row)[1:])


def _texts(data: ArgumentSet, row: int) -> tuple[str, ...]:
    """What is visible before each call of a session, and after the last."""
    return (*data.requests[row], data.end_texts[row])


def _complete(data: ArgumentSet, row: int) -> bool:
    """Whether every call has what its tool says that it requires; others are refused before they are made."""
    made = data.sessions[row]
    required = ((data.schemas.get(each.name) or {}).get("required", ()) for each in made)
    return all(each.arguments.keys() >= set(names) for each, names in zip(made, required, strict=True))


def _known(data: ArgumentSet, row: int) -> KnownSession:
    """A session as ClickHouse would tell it: what ran were tools of a server, which gave objects."""
    made = [replace(each, name=f"{SERVER}:{each.name}", result=given(each)) for each in data.sessions[row]]
    told = _texts(data, row)[1:]
    return KnownSession(tuple(made), (told[0], *told[:-1]), row, (f"s{row}", 0), told[-1])


def told_tools(play: Play) -> list[dict[str, Any]]:
    """The tools as `benchmarks.servers.recorded` is told of them."""
    return [
        {
            "name": tool,
            "description": play.descriptions.get(tool, ""),
            "reads": reads,
            "input_schema": play.schemas[tool],
        }
        for tool, reads in play.reads.items()
    ]


def server_file(play: Play) -> bytes:
    """What `benchmarks.servers.recorded` is started with."""
    results = {
        session.trace_id: {key_of(each.name, each.arguments).decode(): given(each) for each in session.made}
        for session in play.sessions
    }
    return orjson.dumps({"median_s": MEDIAN_S, "tools": told_tools(play), "results": results})


def given(call: Past) -> dict[str, Any]:
    """A result as structured content, which is an object."""
    return (
        call.result
        if isinstance(call.result, dict)
        else {}
        if call.result is None
        else {"value": call.result}
    )

"""What is answered of a model and the catalog: candidates with calls, or why there are none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pml.processors.discovery.library import Library
from pml.processors.learning.known_sessions import KnownSession, as_sequences, learned_sources
from pml.processors.learning.model import NextModel, fitted
from pml.processors.learning.scene import Past
from pml.processors.memory.embedding import HashedNgrams
from pml.schemas.catalog import Capability, CatalogRecord, Edge, EdgeField, ServerTools, Tool
from pml.schemas.prediction import PastElement, Predicted, PredictRequest
from pml.schemas.workflow import Task
from pml.streams.learning.serving import Known, Served, Serving, answered
from pml.streams.settings import Settings

PATH = {"path": {"type": "string"}}
LISTED = PastElement(name="files:list", arguments={}, result={"first": "new.md"})
NOTHING = PastElement(name="files:list", arguments={}, result=None)


def listed(read: Mapping[str, Any]) -> CatalogRecord:
    """A server that lists and reads files; a read requires this."""
    schema = {"properties": dict(read), "required": list(read)}
    tools = (Tool(name="list"), Tool(name="read", input_schema=schema))
    data = ServerTools(server="files", status="listed", tools=tools)
    return CatalogRecord(kind=ServerTools.KIND, id="files", data=data)


def library(read: Mapping[str, Any], *more: CatalogRecord) -> Library:
    """A catalog with that server and more."""
    found = Library()
    for record in (listed(read), *more):
        found.take(record)
    return found


@pytest.fixture(scope="module")
def model() -> NextModel:
    """Has learned that what was listed is read next, by a path."""
    sessions = [
        KnownSession(
            (
                Past("files:list", {}, {"first": f"{number}.md"}),
                Past("files:read", {"path": f"{number}.md"}, None),
            ),
            ("", ""),
            number,
        )
        for number in range(12)
    ]
    known, sources = as_sequences(sessions, {}), learned_sources(sessions, {})
    return fitted(known, HashedNgrams(), seed=1, learner="markov_1", arguments=sources)


def read_next(known: Library, served: Served, past: PastElement) -> Predicted:
    """What is said of reading a file after files were listed."""
    request = PredictRequest(history=(past.name,), past=(past,))
    told = answered(known, "local", request, served).candidates
    return next(each for each in told if each.name == "files:read")


def test_a_field_that_came_makes_the_next_call_feasible(model: NextModel) -> None:
    found = read_next(library(PATH), Served(model), LISTED)
    assert found.feasibility is not None
    assert (found.feasibility.missing, found.feasibility.steps) == ((), 0)
    assert found.confidence > 0.5


def test_without_it_the_call_that_gave_it_before_would_have_to_be_made(model: NextModel) -> None:
    found = read_next(library(PATH), Served(model), NOTHING)
    assert found.feasibility is not None
    assert (found.reason, found.feasibility.missing) == ("not_yet", ("path",))
    assert (found.feasibility.steps, found.feasibility.through) == (1, ("files:list",))


def test_what_nobody_gives_is_infeasible(model: NextModel) -> None:
    found = read_next(library({**PATH, "lines": {"type": "integer"}}), Served(model), LISTED)
    assert found.feasibility is not None
    assert (found.reason, found.feasibility.missing) == ("infeasible", ("lines",))
    assert found.feasibility.steps is None


def test_a_catalog_that_changed_counts_with_the_next_question(model: NextModel) -> None:
    known, served = library({}), Served(model)
    assert read_next(known, served, NOTHING).tasks
    known.take(listed(PATH))
    assert read_next(known, served, NOTHING).reason == "not_yet"


def test_a_guess_that_lacks_what_a_tool_requires_now_makes_no_call(model: NextModel) -> None:
    found = read_next(library({**PATH, "encoding": {"enum": ["utf-8"]}}), Served(model), LISTED)
    assert found.feasibility is not None
    assert (found.reason, found.feasibility.missing, found.tasks) == ("no_arguments", (), ())


def test_an_edge_that_runs_taught_says_who_gives_what_is_missing(model: NextModel) -> None:
    edge = Edge(
        tenant="local",
        type="provides",
        source="cap_1",
        target="files:read",
        weight=0.9,
        fields=(EdgeField(to_field="path"),),
    )
    capability = Capability(
        tenant="local", name="choose", capability_id="cap_1", tasks=(Task(id="n1", tool="files:list"),)
    )
    known = library(
        PATH,
        CatalogRecord(kind=Edge.KIND, id="local/provides/cap_1/files%3Aread", data=edge),
        CatalogRecord(kind=Capability.KIND, id="local/cap_1", data=capability),
    )
    found = read_next(known, Served(model), NOTHING)
    assert found.feasibility is not None
    assert found.feasibility.through == ("cap_1",)


def test_what_a_tenant_did_is_counted_again_within_a_minute(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clock = Clock()
    monkeypatch.setattr("pml.streams.learning.serving.time.monotonic", clock)

    def slow(_store: object, _stretch: object) -> tuple[KnownSession, ...]:
        clock.now_s += 40  # connects, compiles
        clock.looks += 1
        return ()

    monkeypatch.setattr("pml.streams.learning.serving.read_session_values", slow)
    monkeypatch.setattr("pml.streams.learning.serving.Store.connect", lambda *_, **__: None)
    serves = Serving(Settings(data_dir=tmp_path, clickhouse={"url": "http://127.0.0.1:1"}))
    known = Known("local", None, {})
    for asked_after_s, looks in ((0, 1), (59, 1), (1, 2), (30, 2), (30, 3)):
        clock.now_s += asked_after_s
        assert serves.served(known, HashedNgrams()).model is None
        assert clock.looks == looks


class Clock:
    """A clock that a test moves."""

    now_s, looks = 1_000.0, 0

    def __call__(self) -> float:
        return self.now_s

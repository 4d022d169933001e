"""What is answered of a model and the catalog: candidates with calls, or why there are none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import structlog

from pml.processors.discovery.library import Library
from pml.processors.learning import argument_sources, holdings
from pml.processors.learning.known_sessions import KnownSession, as_sequences, learned_sources
from pml.processors.learning.model import NextModel, fitted
from pml.processors.learning.scene import Past, Taken, taken_apart
from pml.processors.memory.embedding import HashedNgrams
from pml.schemas.catalog import Capability, CatalogRecord, Edge, EdgeField, ServerTools, Tool
from pml.schemas.prediction import PastElement, Predicted, PredictRequest
from pml.schemas.workflow import LiteralValue, Task
from pml.streams.learning import artefacts
from pml.streams.learning.serving import Known, Served, Serving, answered
from pml.streams.settings import Settings
from tests.streams.learning.kept_models import about

PATH = {"path": {"type": "string"}}
LISTED = PastElement(name="files:list", arguments={}, result={"first": "new.md"})
NOTHING = PastElement(name="files:list", arguments={}, result=None)
SESSIONS = [
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
    known, sources = as_sequences(SESSIONS, {}), learned_sources(SESSIONS, {})
    return fitted(known, HashedNgrams(), seed=1, learner="markov_1", arguments=sources)


def read_next(known: Library, served: Served, past: PastElement) -> Predicted:
    """What is said of reading a file after files were listed."""
    request = PredictRequest(history=(past.name,), past=(past,))
    told = answered(known, "local", request, served).candidates
    return next(each for each in told if each.name == "files:read")


def test_what_a_client_told_makes_the_next_call_feasible(model: NextModel) -> None:
    told = PastElement(name="files:list", arguments={}, result=None, context={"path": "told.md"})
    for past, missing in ((NOTHING, ("path",)), (told, ())):
        found = read_next(library(PATH), Served(model), past)
        assert found.feasibility is not None
        assert found.feasibility.missing == missing


def test_what_a_text_says_becomes_an_argument_unless_it_is_a_secret() -> None:
    def told(number: int) -> KnownSession:
        text = f"read 'file_{number}'"
        made = (Past("files:list", {}, None), Past("files:read", {"path": f"file_{number}"}, None))
        return KnownSession(made, (text, text), number)

    sessions = [told(number) for number in range(20)]
    sources = learned_sources(sessions, {})
    model = fitted(as_sequences(sessions, {}), HashedNgrams(), seed=1, learner="markov_1", arguments=sources)
    for text, path in (("read 'file_77'", "file_77"), ("my password='file_77'", None)):
        request = PredictRequest(history=("files:list",), past=(NOTHING,), request=text)
        answer = answered(library(PATH), "local", request, Served(model))
        tasks = answer.workflow.tasks if answer.workflow else ()
        named = [task.arguments.get("path") for task in tasks if task.tool == "files:read"]
        assert [each.value for each in named if isinstance(each, LiteralValue)] == ([path] if path else [])


def test_a_field_that_came_makes_the_next_call_feasible(model: NextModel) -> None:
    found = read_next(library(PATH), Served(model), LISTED)
    assert found.feasibility is not None
    assert (found.feasibility.missing, found.feasibility.steps) == ((), 0)
    assert found.confidence > 0.5


def test_the_past_is_taken_apart_once_for_all_that_is_asked(
    model: NextModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Past] = []

    def counted(element: Past) -> Taken:
        taken.append(element)
        return taken_apart(element)

    for room in (argument_sources, holdings):
        monkeypatch.setattr(room, "taken_apart", counted)
    request = PredictRequest(history=("files:list",), past=(LISTED,))
    found = answered(library(PATH), "local", request, Served(model)).candidates
    assert {each.name for each in found if each.tasks} == {"files:list", "files:read"}
    assert [each.name for each in taken] == ["files:list"]


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


def counting(monkeypatch: pytest.MonkeyPatch, folder: Path, read: Callable[[], None]) -> Serving:
    """What serves a tenant of a store that has those sessions; this happens while they are read."""

    def values(_store: object, _stretch: object) -> Sequence[KnownSession]:
        read()
        return SESSIONS

    monkeypatch.setattr("pml.streams.learning.counted_runs.read_session_values", values)
    monkeypatch.setattr("pml.streams.learning.counted_runs.Store.connect", lambda *_, **__: None)
    return Serving(Settings(data_dir=folder, clickhouse={"url": "http://127.0.0.1:1"}))


def test_what_was_counted_answers_while_it_is_counted_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    held: list[Served] = []
    told: list[Predicted] = []

    def meanwhile() -> None:
        told.extend(read_next(library(PATH), served, LISTED) for served in held)

    now_s = [1_000.0]
    monkeypatch.setattr("pml.streams.learning.counted_runs.time.monotonic", lambda: now_s[0])
    serves = counting(monkeypatch, tmp_path, meanwhile)
    for _ in range(2):
        served = serves.served(Known("local", None, {}), HashedNgrams())
        assert served is not None
        held.append(served)
        now_s[0] += 700
    assert [each.confidence > 0.5 for each in told] == [True]
    assert held[0] is not held[1]


def test_what_was_counted_is_ready_while_it_is_due_and_by_whoever_asks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: NextModel
) -> None:
    """Also where the promoted model cannot serve: it is tried again beside the questions."""
    serves = counting(monkeypatch, tmp_path, lambda: None)
    other = promoted(tmp_path, model, "bob")
    for known in (Known("local", None, {}), Known("local", other, {})):
        now_s = [1_000.0]
        monkeypatch.setattr("pml.streams.learning.counted_runs.time.monotonic", lambda at_s=now_s: at_s[0])
        assert serves.ready(known) is None or known.promoted is None
        found = serves.served(known, HashedNgrams())
        assert found is not None
        for after_s, due in ((0, False), (700, True)):
            now_s[0] += after_s
            assert serves.ready(known) is found
            assert serves.due(known, found) is due


def promoted(folder: Path, model: NextModel, tenant: str) -> str:
    """A model of a tenant, kept where it serves from."""
    return artefacts.write(folder / "models", model, about(tenant))


def test_an_answer_under_way_keeps_its_model_where_another_is_promoted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: NextModel
) -> None:
    serves = counting(monkeypatch, tmp_path, lambda: None)
    model_id = promoted(tmp_path, model, "local")
    before = serves.served(Known("local", None, {}), HashedNgrams())
    after = serves.served(Known("local", model_id, {}), HashedNgrams())
    assert before is not None
    assert after is not None
    request = PredictRequest(history=("files:list",), past=(LISTED,))
    said = [answered(library(PATH), "local", request, each) for each in (before, after)]
    assert [(each.model, each.learner) for each in said] == [("", "markov_1"), (model_id, "markov_1")]


def test_a_model_that_fell_is_followed_by_what_is_counted_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: NextModel
) -> None:
    serves = counting(monkeypatch, tmp_path, lambda: None)
    model_id = promoted(tmp_path, model, "local")
    asked = (None, model_id, None)
    found = [serves.served(Known("local", each, {}), HashedNgrams()) for each in asked]
    assert [each and each.model_id for each in found] == ["", model_id, ""]


def test_a_model_of_another_tenant_does_not_serve(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: NextModel
) -> None:
    serves = counting(monkeypatch, tmp_path, lambda: None)
    model_id = promoted(tmp_path, model, "bob")
    with structlog.testing.capture_logs() as logs:
        others = serves.served(Known("local", model_id, {}), HashedNgrams())
        own = serves.served(Known("bob", model_id, {}), HashedNgrams())
    assert [each and each.model_id for each in (others, own)] == ["", model_id]
    (refused,) = [each for each in logs if each["log_level"] == "error"]
    assert refused["event"] == "the promoted model cannot serve; what is counted does"
    assert "another tenant" in refused["reason"]


@pytest.mark.parametrize(("at_hand", "loads"), [(2, 6), (3, 3)])
def test_models_of_as_many_tenants_as_said_are_kept_at_hand(
    at_hand: int, loads: int, tmp_path: Path, model: NextModel
) -> None:
    store, learning = {"url": "http://127.0.0.1:1"}, {"tenants_at_hand": at_hand}
    serves = Serving(Settings(data_dir=tmp_path, clickhouse=store, learning=learning))
    asked = [Known(name, promoted(tmp_path, model, name), {}) for name in ("ann", "bob", "cay")]
    with structlog.testing.capture_logs() as logs:
        for known in (*asked, *asked):
            found = serves.ready(known) or serves.served(known, HashedNgrams())
            assert found is not None
            assert found.model_id == known.promoted
    assert [each["event"] for each in logs].count("model loaded") == loads


def test_who_was_asked_for_last_stays_at_hand(tmp_path: Path, model: NextModel) -> None:
    store, learning = {"url": "http://127.0.0.1:1"}, {"tenants_at_hand": 2}
    serves = Serving(Settings(data_dir=tmp_path, clickhouse=store, learning=learning))
    ann, bob, cay = (Known(name, promoted(tmp_path, model, name), {}) for name in ("ann", "bob", "cay"))
    for known in (ann, bob):
        serves.served(known, HashedNgrams())
    assert serves.ready(ann) is not None
    serves.served(cay, HashedNgrams())
    assert [serves.ready(each) is not None for each in (ann, bob, cay)] == [True, False, True]


def test_what_is_another_model_by_now_is_not_ready(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: NextModel
) -> None:
    serves = counting(monkeypatch, tmp_path, lambda: None)
    model_id = promoted(tmp_path, model, "local")
    counted, trained = Known("local", None, {}), Known("local", model_id, {})
    assert serves.ready(counted) is None
    serves.served(counted, HashedNgrams())
    # It is not its turn again yet.
    assert [serves.ready(each) is not None for each in (counted, trained)] == [True, False]
    serves.served(trained, HashedNgrams())
    assert [serves.ready(each) is not None for each in (counted, trained)] == [False, True]

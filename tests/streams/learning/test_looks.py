"""`pml train` tells what runs were called with, and what it made is told the same of the latest element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pml.clickhouse.client import Store
from pml.clickhouse.training.selection import Selection
from pml.processors.discovery.library import Library
from pml.processors.learning.known_sessions import KnownSession, as_sequences
from pml.processors.learning.learners import BASELINES, LEARNERS
from pml.processors.learning.looks import LOOK, look
from pml.processors.learning.scene import Past
from pml.processors.memory.embedding import HashedNgrams
from pml.processors.speculation.backtest import Terms, backtests
from pml.processors.speculation.budget import BUDGETS
from pml.processors.speculation.played import PlayedRun
from pml.processors.workflow.catalog import Catalog
from pml.schemas.prediction import PastElement, PredictRequest
from pml.streams.cli import train as cli_train
from pml.streams.cli.train_report import print_manifest
from pml.streams.learning import artefacts
from pml.streams.learning.phases import Phases
from pml.streams.learning.serving import Served, answered, as_served
from pml.streams.learning.sources import Known, Source, from_file, from_store, with_looks
from pml.streams.learning.training import Wish, train
from pml.streams.orchestrator.role import policy
from pml.streams.settings import Settings
from tests.clickhouse import history as h
from tests.clickhouse.history import History
from tests.streams.learning.exported import write_export

EMBEDDING, NEXT = HashedNgrams(), ("chart:draw", "mail:send")
ENDINGS = (".csv", ".json")
# What no session was asked with, so that nothing is recalled word for word.
REQUEST = "have a look"


def read(number: int) -> dict[str, Any]:
    """Arguments of which only the extension says what comes next."""
    return {"path": f"docs/no {number}{ENDINGS[number % 2]}"}


def sessions_of(numbers: range) -> list[KnownSession]:
    return [
        KnownSession(
            (Past("files:read", read(each), None), Past(NEXT[each % 2], {}, None)),
            ("", ""),
            each * 1_000,
            (f"ses_{each}", 0),
        )
        for each in numbers
    ]


@cache
def source() -> Source:
    known = sessions_of(range(120))
    about = {"from": "test", "runs": 240, "sessions": 120}
    return Source(as_sequences(known, {}), about, known, names=[each.name for each in known])


def settings_in(folder: Path) -> Settings:
    return Settings(data_dir=folder, clickhouse={"url": "http://127.0.0.1:1"})


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, Mapping[str, Any]]:
    """What `pml train --learner attention_head` makes, and where."""
    settings = settings_in(tmp_path_factory.mktemp("trained"))
    told = with_looks(source(), settings.installation_key())
    wish = Wish(seed=1, usual=BASELINES, learner="attention_head")
    return settings, train(told, EMBEDDING, settings.models_folder, wish, Phases()).manifest


def served_by(trained: tuple[Settings, Mapping[str, Any]]) -> Served:
    settings, manifest = trained
    model, kept = artefacts.load(settings.models_folder, manifest["model_id"], EMBEDDING)
    return as_served(settings, model, kept)


def first_after(served: Served, *past: PastElement) -> str | None:
    request = PredictRequest(history=tuple(each.name for each in past), past=past)
    return answered(Library(), "local", request, served).first


def test_what_serves_is_told_what_the_latest_element_was_called_with(
    trained: tuple[Settings, Mapping[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    served = served_by(trained)
    assert (trained[1]["reads_looks"], served.model.reads_looks) == (True, True)
    assert served.hash_key == trained[0].installation_key()
    print_manifest(trained[1])
    assert "it reads what the latest call's arguments look like" in capsys.readouterr().out
    other = PastElement(name="files:read", arguments=read(1_001))
    for number in range(1_000, 1_020):
        latest = PastElement(name="files:read", arguments=read(number))
        assert first_after(served, other, latest) == NEXT[number % 2]


def test_where_another_key_hashes_values_it_does_not_serve(
    trained: tuple[Settings, Mapping[str, Any]], tmp_path: Path
) -> None:
    settings, manifest = trained
    model, kept = artefacts.load(settings.models_folder, manifest["model_id"], EMBEDDING)
    key = settings.installation_key()
    assert key.hex() not in str(kept)
    with pytest.raises(artefacts.ModelUnfit, match="another installation's key"):
        as_served(settings_in(tmp_path), model, kept)


def test_where_its_arguments_are_gone_nothing_is_told(trained: tuple[Settings, Mapping[str, Any]]) -> None:
    served = served_by(trained)
    gone = PredictRequest(history=("files:read",), request=REQUEST, past=(PastElement(name="files:read"),))
    without = PredictRequest(history=("files:read",), request=REQUEST)
    one, other = (answered(Library(), "local", each, served) for each in (gone, without))
    assert one == other


def test_a_backtest_is_answered_as_what_serves(trained: tuple[Settings, Mapping[str, Any]]) -> None:
    settings, _ = trained
    served = served_by(trained)
    played = [
        [
            PlayedRun(element, REQUEST, started_ms=at * 100, ended_ms=at * 100 + 10, calls=())
            for at, element in enumerate(session.elements, start=1)
        ]
        for session in sessions_of(range(1_000, 1_020))
    ]
    terms = Terms(0.5, BUDGETS["normal"], Catalog(policy(settings)), {})
    (found,) = backtests(played, lambda each: answered(Library(), "local", each, served), [terms])
    assert (found.right, found.asked) == (20, 40)


@pytest.mark.parametrize(("learner", "told"), [("markov_1", False), ("attention", True)])
def test_looks_are_made_only_where_somebody_may_read_them(
    learner: str, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Source] = []

    def kept(source: Source, *_: object) -> None:
        given.append(source)
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_train, "_read", lambda *_, **__: source())
    monkeypatch.setattr(cli_train, "_embedding", lambda *_: EMBEDDING)
    monkeypatch.setattr("pml.streams.learning.training.train", kept)
    asked = cli_train._Asked(
        "clickhouse", (None, None), "local", 1, 0.2, "groups", learner, False, None, drawn=False
    )
    settings = settings_in(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        cli_train._trained(settings, asked, with_catalog=True)
    looks = given[0].sessions.traces.looks
    assert (looks is not None) == told
    if looks is not None:
        first = look("files:read", read(0), settings.installation_key())
        assert (looks.shape, looks[0].tolist()) == ((240, LOOK), first.tolist())


def test_who_may_read_looks_is_asked_for_by_name() -> None:
    assert {name for name in LEARNERS if Wish(learner=name).asks_attention} == {
        *("attention", "attention_head", "attention_prioritised"),
    }
    assert Wish(with_attention=True).asks_attention
    assert not Wish().asks_attention


def test_of_a_file_no_look_is_known(tmp_path: Path) -> None:
    found = from_file(write_export(tmp_path / "traces.npz"), Known(), "local")
    assert with_looks(found, bytes(32)).sessions.traces.looks is None


def test_a_session_without_values_has_looks_of_nothing() -> None:
    whole = source()
    told = with_looks(replace(whole, values=whole.values[:2]), bytes(32)).sessions.traces.looks
    assert told is not None
    assert np.flatnonzero(told.any(axis=1)).tolist() == [0, 2]


@pytest.mark.integration
def test_runs_of_the_store_look_like_what_they_were_called_with(migrated_store: Store) -> None:
    """Of a tool its call's arguments, of a capability the run's context; also where a run has neither."""
    for number in range(2):
        session = History(f"ses_{number}", 3, 100 * (number + 1), 100 * (number + 1))
        session.add(h.run_started(tasks=1), "run_1")
        session.add(h.completed("n1", tool="files:read", arguments=read(number)), "run_1")
        session.add(h.run_completed(), "run_1")
        for run_id, capability_id in (("run_2", None), ("run_3", "cap_1"), ("run_4", None)):
            context = {"repo": f"no {number}"}
            session.add(h.run_started(capability_id=capability_id, context=context, tasks=2), run_id)
            for task_id in ("n1", "n2"):
                session.add(h.completed(task_id, tool="git:log"), run_id)
            session.add(h.run_completed(), run_id)
        session.insert(migrated_store)
    found = from_store(migrated_store, Selection(tenant="local"), Known())
    looks = with_looks(found, bytes(32)).sessions.traces.looks
    assert looks is not None
    rows = [[name for name, _ in found.names].index(f"ses_{number}") for number in range(2)]
    for number, row in enumerate(rows):
        expected = [
            look("files:read", read(number), bytes(32)),
            np.zeros(LOOK),
            look("cap_1", {"repo": f"no {number}"}, bytes(32)),
            np.zeros(LOOK),
        ]
        np.testing.assert_array_equal(looks.reshape(2, 4, LOOK)[row], expected)

"""A training leaves a model that serves, a manifest that says why, and a count of looks at the test side."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast, get_args

import numpy as np
import orjson
import pytest

from pml.processors.discovery.library import Library
from pml.processors.learning.argument_sources import ArgumentSources
from pml.processors.learning.call_success import fit_calls, judge_calls
from pml.processors.learning.known_sessions import KnownSession
from pml.processors.learning.learners import ATTENTIVE, BASELINES, LEARNERS, USUAL
from pml.processors.learning.model import fitted
from pml.processors.learning.packed_texts import text_array
from pml.processors.learning.scene import Past
from pml.processors.learning.training import Split
from pml.processors.memory.embedding import HashedNgrams
from pml.schemas.errors import ConfigurationError
from pml.schemas.prediction import PredictRequest
from pml.streams.cli import train as cli_train
from pml.streams.cli.train import Learner
from pml.streams.cli.train_report import print_manifest
from pml.streams.learning import artefacts
from pml.streams.learning.curve_plot import draw_curve
from pml.streams.learning.data_hash import data_hash
from pml.streams.learning.openings import FILE, count_opening
from pml.streams.learning.phases import Phases
from pml.streams.learning.serving import Served, answered
from pml.streams.learning.set_table import judge_sets
from pml.streams.learning.sources import Known, Source, from_file
from pml.streams.learning.training import TEST_SHARE, NothingToLearn, Trained, Wish, learned_values, train
from tests.streams.learning.exported import PATTERNS, write_export
from tests.streams.learning.recorded_sets import row, written

EMBEDDING = HashedNgrams()
WISH = Wish(seed=1, test_share=0.3)


@dataclass(frozen=True)
class First:
    """A training of which several tests read, what it learned from, where it lies, and how often it told."""

    source: Source
    folder: Path
    trained: Trained
    steps: int


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> First:
    folder = tmp_path_factory.mktemp("first")
    source = from_file(write_export(folder / "traces.npz"), Known(), "local")
    steps: list[int] = []
    phases = Phases(on_step=lambda: steps.append(1))
    trained = train(source, EMBEDDING, folder / "models", WISH, phases)
    return First(source, folder / "models", trained, len(steps))


def test_a_model_is_kept_with_all_that_is_known_of_it(first: First) -> None:
    folder, trained = first.folder, first.trained
    model, kept = artefacts.load(folder, trained.manifest["model_id"], EMBEDDING)
    assert model.recall is not None
    found = model.candidates(["files:read"], "")
    assert (found[0].name, found == trained.model.candidates(["files:read"], "")) == ("mail:send", True)
    # Some sessions end with a read.
    assert found[0].confidence > 0.8
    assert (kept["serves"], kept["baseline"], kept["seed"]) == ("markov_1", "markov_1", 1)
    assert set(kept["validation"]) == set(USUAL)
    assert (kept["message_passing"], kept["reads_looks"]) == (None, False)
    recalled = kept["recalled"]
    assert (recalled["questions"], recalled["right"]) == (model.recall.asked, model.recall.right)
    assert recalled["used"]
    latest = recalled["latest"]
    assert latest["answered"] == latest["questions"] + latest["ends"] > 0
    for found in (kept["served"], kept["test"]["served"]):
        assert found["hit_1"]["mean"] == 1
        assert found["gain"]["hit_1"] == 0
        assert found["recalled"] > 0
    assert kept["data"]["runs"] == 120
    assert kept["test"]["learners"]["markov_1"]["hit_1"]["mean"] == 1
    assert list(kept["phases_s"]) == ["judging", "arguments", "fitting", "testing"]
    assert first.steps == 5 * len(USUAL)

    again = train(first.source, EMBEDDING, folder, WISH, Phases())
    assert again.manifest["model_id"] == trained.manifest["model_id"]
    assert [each.manifest["test"]["openings"] for each in (trained, again)] == [1, 2]
    assert again.manifest["test"]["hash"] == trained.manifest["test"]["hash"]
    assert again.manifest["data"]["hash"] == trained.manifest["data"]["hash"]


def test_runs_that_were_sent_without_a_session_teach_nothing(tmp_path: Path) -> None:
    """Nobody is asked what comes after them; they would teach that a session is most likely over."""
    named = from_file(write_export(tmp_path / "traces.npz"), Known(), "local")
    runs = np.array([f"run_{number:05}" for number in range(120)], dtype="S9")
    # Every third session: each of its runs has a session of its own, which is called like the run.
    alone = np.arange(120) // 4 % 3 == 0
    sessions = np.where(alone, runs, np.array([f"ses_{number // 4:05}" for number in range(120)], "S9"))
    mixed = from_file(
        write_export(tmp_path / "mixed.npz", run_id=runs, session_id=sessions), Known(), "local"
    )
    kept = np.flatnonzero(np.arange(30) % 3 != 0)
    expected, found = named.sessions.traces.selected(kept), mixed.sessions.traces
    for name in ("items", "offsets", "success", "texts", "end_texts"):
        assert found.to_arrays()[name].tolist() == expected.to_arrays()[name].tolist()
    assert mixed.names == [(f"ses_{number:05}", 0) for number in kept.tolist()]
    assert (mixed.about["runs"], mixed.about["runs_without_session"]) == (80, 40)
    assert named.about["runs_without_session"] == 0
    calls = mixed.sessions.calls
    assert calls is not None
    assert (len(calls.traces), calls.traces.max()) == (80, 19)


def test_of_sessions_that_are_kept_for_the_end_or_left_out_no_value_is_learned(tmp_path: Path) -> None:
    source = from_file(write_export(tmp_path / "traces.npz", sessions=3), Known(), "local")
    names = (*source.names, ("ses_without_calls", 0))
    told = replace(source, values=[KnownSession((), (), 0, name) for name in names])
    parts = Split(np.array([0]), np.array([2]), "")
    assert [each.name for each in learned_values(told, parts)] == [names[0], names[3]]


def test_what_arguments_look_like_is_kept_where_it_says_how_a_call_ends(first: First) -> None:
    trained = first.trained
    calls = trained.manifest["call_success"]
    rows = calls["learners"]
    assert (list(rows), calls["used"]) == (["with arguments", "without arguments"], True)
    assert rows["with arguments"]["auc"] >= 0.9
    assert rows["without arguments"]["auc"] <= 0.6
    model, _ = artefacts.load(first.folder, trained.manifest["model_id"], EMBEDDING)
    fails, ends_well = (model.succeeds("files:read", orjson.loads(pattern)) for pattern in PATTERNS)
    assert fails < 0.2
    assert ends_well > 0.8
    print_manifest(trained.manifest)

    asked = PredictRequest(history=("files:read",))
    found = {}
    for path in ("a.csv", "a.json"):
        filling = replace(model, arguments=cast("ArgumentSources", Always({"path": path})))
        served = Served(filling, "mdl_1", hash_key=bytes(32))
        found[path] = answered(Library(), "local", asked, served).candidates[0].confidence
    assert found["a.csv"] < 0.3 * found["a.json"]


def test_arguments_that_say_nothing_do_not_count(tmp_path: Path) -> None:
    ends = np.random.default_rng(3).integers(0, 2, 120).astype("|u1")
    source = from_file(write_export(tmp_path / "traces.npz", call_success=ends), Known(), "local")
    trained = train(source, EMBEDDING, tmp_path / "models", Wish(seed=1, usual=BASELINES), Phases())
    assert trained.manifest["call_success"]["used"] is False
    assert trained.model.success is None
    assert trained.model.succeeds("files:read", None) == 1


def test_skipped_tasks_say_nothing_of_how_a_call_ends(tmp_path: Path) -> None:
    """Half of the tasks are skipped; calls succeed as often whatever their arguments look like."""
    drawn = np.random.default_rng(5)
    skipped = drawn.permutation(np.arange(240) % 2 == 0)
    tasks = {
        "call_pattern_words": np.array(["", *PATTERNS]),
        "call_pattern": np.where(skipped, 0, drawn.integers(1, 3, 240)).astype("<i4"),
        "call_success": (~skipped & (drawn.random(240) < 0.9)).astype("|u1"),
    }
    sessions = from_file(write_export(tmp_path / "t.npz", sessions=60, **tasks), Known(), "local").sessions
    assert sessions.calls is not None
    judged = judge_calls(sessions.calls, sessions.traces.groups, seed=1)
    assert judged is not None
    report = judged.report(1)
    assert (report["calls"], report["used"]) == (120, False)
    assert report["learners"]["with arguments"]["auc"] < 0.7
    likely = fit_calls(sessions.calls).probabilities(["new:tool"], [None])
    assert likely[0] == pytest.approx(0.9, abs=0.15)


def test_the_hash_of_the_data_covers_all_that_training_sees(tmp_path: Path) -> None:
    words = {"request": np.zeros(120, dtype="<i4"), "request_words": np.array(["send it"])}
    others: list[dict[str, np.ndarray]] = [
        {},
        words,
        {**words, "request_words": np.array(["show it"])},
        {"call_success": np.ones(120, dtype="|u1")},
        {"call_pattern": np.zeros(120, dtype="<i4")},
        {"call_pattern_words": np.array(["", PATTERNS[0]])},
    ]
    sources = [from_file(write_export(tmp_path / "t.npz", **each), Known(), "local") for each in others]
    told = Known({"mail:send": "send a mail"}, ("mail:send",))
    sources.append(from_file(write_export(tmp_path / "t.npz"), told, "local"))
    told = replace(told, contained={"cap_a": ["mail:send"]})
    sources.append(from_file(write_export(tmp_path / "t.npz"), told, "local"))
    assert len({source.about["hash"] for source in sources}) == len(sources)
    padded, packed = np.array(["a", "long"]), text_array(["a", "long"])
    assert data_hash({"words": padded}, {}, ()) == data_hash({"words": packed}, {}, ())
    empty = data_hash({}, {}, ())
    assert empty != data_hash({}, {}, (KnownSession((Past("a:b", {"x": 1}, None),), ("",), 0),))


@dataclass
class Always:
    """Knows the arguments of every call, and is sure."""

    arguments: dict[str, str]
    confidence: float = 1.0
    sources: dict[str, str] = field(default_factory=dict)
    known: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(seen={}))

    def guesses_after(self, *_: object) -> list[Always]:
        return [self]


def test_a_learner_that_was_asked_for_serves_however_good_it_is(tmp_path: Path) -> None:
    source = from_file(write_export(tmp_path / "traces.npz"), Known(), "local")
    wish = Wish(seed=1, usual=BASELINES, learner="popularity")
    trained = train(source, EMBEDDING, tmp_path / "models", wish, Phases())
    assert (trained.manifest["serves"], trained.manifest["baseline"]) == ("popularity", "markov_1")
    assert trained.manifest["reason"] == "popularity was asked for"
    model, _ = artefacts.load(tmp_path / "models", trained.manifest["model_id"], EMBEDDING)
    assert model.candidates(["files:read"], "") == trained.model.candidates(["files:read"], "")


def test_the_attention_model_is_compared_where_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = from_file(write_export(tmp_path / "traces.npz"), Known(), "local")
    folder = tmp_path / "models"
    manifest = train(source, EMBEDDING, folder, Wish(seed=1, with_attention=True), Phases()).manifest
    assert set(manifest["validation"]) == {*USUAL, *ATTENTIVE}
    assert set(manifest["gains"]) >= set(ATTENTIVE)
    low, high = manifest["message_passing"]["interval"]
    assert low <= manifest["message_passing"]["hit_1"] <= high
    print_manifest(manifest)
    assert "messages along the hypergraph" in capsys.readouterr().out

    assert set(Wish(seed=1, learner="attention").learners) == {*USUAL, "attention"}
    alone = train(source, EMBEDDING, folder, Wish(seed=1, usual=BASELINES, learner="attention"), Phases())
    assert set(alone.manifest["validation"]) == {*BASELINES, "attention"}
    assert alone.manifest["message_passing"] is None
    model, kept = artefacts.load(folder, alone.manifest["model_id"], EMBEDDING)
    assert (model.learner, kept["serves"]) == ("attention", "attention")
    assert model.candidates(["files:read"], "") == alone.model.candidates(["files:read"], "")


def test_the_attention_model_is_trained_with_prioritised_replay_where_it_is_named(tmp_path: Path) -> None:
    source = from_file(write_export(tmp_path / "traces.npz"), Known(), "local")
    wish = Wish(seed=1, usual=BASELINES, learner="attention_prioritised")
    trained = train(source, EMBEDDING, tmp_path / "models", wish, Phases())
    assert set(trained.manifest["validation"]) == {*BASELINES, "attention_prioritised"}
    model, kept = artefacts.load(tmp_path / "models", trained.manifest["model_id"], EMBEDDING)
    assert kept["serves"] == "attention_prioritised"
    assert model.candidates(["files:read"], "") == trained.model.candidates(["files:read"], "")
    plain, surprised = (
        fitted(source.sessions, EMBEDDING, 1, name) for name in ("attention", "attention_prioritised")
    )
    assert plain.candidates(["files:read"], "") != surprised.candidates(["files:read"], "")


def test_the_command_line_names_every_learner() -> None:
    assert set(get_args(Learner)) == set(LEARNERS)
    assert cli_train.TEST_SHARE == TEST_SHARE


def test_nothing_is_looked_at_where_nothing_is_kept_for_the_end(tmp_path: Path) -> None:
    source = from_file(write_export(tmp_path / "traces.npz", sessions=6), Known(), "local")
    wish = Wish(test_share=0.0, with_curve=True)
    manifest = train(source, EMBEDDING, tmp_path / "models", wish, Phases()).manifest
    assert manifest["test"]["openings"] == 0
    assert not (tmp_path / "models" / FILE).exists()
    assert manifest["learning_curve"]["sessions"][-1] > manifest["learning_curve"]["sessions"][0]
    draw_curve(manifest, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"


def test_too_little_to_learn_from_is_said(tmp_path: Path) -> None:
    source = from_file(write_export(tmp_path / "traces.npz", sessions=1), Known(), "local")
    with pytest.raises(NothingToLearn, match="1 sessions are not enough"):
        train(source, EMBEDDING, tmp_path / "models", Wish(test_share=0.0), Phases())
    single = from_file(write_export(tmp_path / "single.npz", runs=1), Known(), "local")
    with pytest.raises(NothingToLearn, match="nothing to ask"):
        train(single, EMBEDDING, tmp_path / "models", Wish(), Phases())


def test_another_file_is_no_training_set(tmp_path: Path) -> None:
    (tmp_path / "traces.npz").write_bytes(b"PAR1")
    with pytest.raises(ConfigurationError, match="pml export traces"):
        from_file(tmp_path / "traces.npz", Known(), "local")
    with pytest.raises(ConfigurationError, match="No such file"):
        from_file(tmp_path / "gone.npz", Known(), "local")


def test_of_a_file_with_several_tenants_only_the_sessions_of_one_are_learned(tmp_path: Path) -> None:
    tenants = {"tenant": np.arange(120, dtype="<i4") // 60, "tenant_words": np.array(["acme", "other"])}
    # The runs of "other" have no calls, then one, then two.
    counts = np.concatenate((np.ones(60, dtype=np.int64), np.arange(60) % 3))
    file = write_export(tmp_path / "traces.npz", **tenants, offsets=np.concatenate(([0], np.cumsum(counts))))
    whole = from_file(file, Known(), "acme")
    assert (whole.about["sessions"], whole.about["tenant"]) == (15, "acme")
    assert {name for name, _ in whole.names} == {f"ses_{number:03}" for number in range(15)}
    others = from_file(file, Known(), "other")
    assert {name for name, _ in others.names} == {f"ses_{number:03}" for number in range(15, 30)}
    (tmp_path / "alone").mkdir()
    alone = from_file(write_export(tmp_path / "alone" / "traces.npz", sessions=15), Known(), "local")
    assert whole.sessions.traces.outcomes.tolist() == alone.sessions.traces.outcomes.tolist()
    with pytest.raises(NothingToLearn):
        train(from_file(file, Known(), "nobody"), EMBEDDING, tmp_path / "models", Wish(), Phases())


def test_the_catalog_says_what_a_tool_is_and_others_have_their_names(tmp_path: Path) -> None:
    known = Known({"mail:send": "sends a mail", "new:tool": "does something new"}, ("mail:send", "new:tool"))
    sessions = from_file(write_export(tmp_path / "traces.npz"), known, "local").sessions
    told = dict(zip(sessions.vocabulary.names, sessions.described()[1:], strict=True))
    assert told["mail:send"] == "sends a mail"
    assert told["new:tool"] == "does something new"
    assert "read" in told["files:read"]


def test_openings_are_counted_for_each_test_side(tmp_path: Path) -> None:
    assert [count_opening(tmp_path, name) for name in ("one", "one", "other", "one")] == [1, 2, 1, 3]
    (tmp_path / FILE).write_text("[")
    with pytest.raises(ConfigurationError, match="openings"):
        count_opening(tmp_path, "one")


def test_on_every_set_the_best_baseline_serves_or_what_is_surely_better(tmp_path: Path) -> None:
    rows = [row(number, ["a", "b", "c"], intent=f"plan {number}") for number in range(12)]
    for number, each in enumerate(rows):
        each["tasks"][0]["arguments"] = {"x": number}
    written(tmp_path, "nestful", rows, ["a", "b", "c"])
    found = judge_sets(tmp_path, EMBEDDING, Wish(1), Phases())
    assert [each["set"] for each in found] == ["nestful"]
    assert (found[0]["serves"], found[0]["gain"]) == ("markov_1", {"hit_1": 0, "interval": (0, 0)})
    assert (found[0]["questions"], found[0]["unseen"]) == (24, 0)
    with pytest.raises(ConfigurationError, match="none of the data sets"):
        judge_sets(tmp_path / "nestful", EMBEDDING, Wish(1), Phases())
    (tmp_path / "tau").mkdir()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        judge_sets(tmp_path, EMBEDDING, Wish(1), Phases())

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rich.console import Console

from pml.streams.demo.comparison import Outcome, TaskResult
from pml.streams.demo.learning_report import LearningReport, Way, WayPlayed, show

MODEL = {"model_id": "mdl_1", "serves": "nearest", "baseline": "markov_1", "reason": "nearest is better"}
PLAN = {
    "recorded": 40,
    "played": 1,
    "seed": 1,
    "threshold": None,
    "latency_ms": 300,
    "tenant": "demo_0f37a50dcf2e",
}


def played(name: str, value: Any, learner: str | None = None, begun: int = 0, hits: int = 0) -> WayPlayed:
    manifest = None if learner is None else {"serves": learner}
    outcome = Outcome("completed", {"n1": TaskResult("completed", value)}, "")
    return WayPlayed(Way(name, manifest), (100.0,), ([outcome],), calls=3, begun=begun, hits=hits)


def report(*ways: WayPlayed, **changes: Any) -> LearningReport:
    return LearningReport({**PLAN, **changes}, MODEL, ways)


def printed(found: LearningReport) -> str:
    console = Console(width=160, force_terminal=False)
    with console.capture() as capture:
        show(found, console)
    return capture.get()


def test_it_shows_hits_and_waste_side_by_side() -> None:
    found = report(
        played("no prediction", "a"),
        played("baseline", "a", "markov_1", 3, 1),
        played("model", "a", "nearest", 3, 3),
    )
    ways = {way["way"]: (way["begun"], way["hits"], way["wasted"]) for way in found.as_dict()["ways"]}
    assert ways == {"no prediction": (0, 0, 0), "baseline": (3, 1, 2), "model": (3, 3, 0)}
    assert found.ok
    text = printed(found)
    assert "model: nearest" in text
    assert "The threshold is as it is" in text
    assert f"the tenant {PLAN['tenant']}'s; they serve nobody else" in text
    assert "Everything identical." in text


def test_an_override_of_the_threshold_is_printed() -> None:
    found = report(played("no prediction", "a"), threshold=0.7)
    assert "0.7 (an override)" in printed(found)


def test_another_result_is_told_and_is_a_failure() -> None:
    found = report(played("no prediction", "a"), played("model", "b", "nearest", 1, 1))
    assert not found.ok
    assert found.differences == ["model, session 1, workflow 1: n1: the results differ"]
    assert "Results differ." in printed(found)


def test_that_the_model_is_the_baseline_is_said() -> None:
    found = LearningReport(PLAN, {**MODEL, "serves": "markov_1"}, (played("no prediction", "a"),))
    assert "The model is the best baseline" in printed(found)


def test_thresholds_that_moved_between_the_ways_are_told() -> None:
    baseline = replace(played("baseline", "a", "markov_1", 3, 1), thresholds=(0.92, 0.85, 0.8))
    model = replace(played("model", "a", "nearest", 3, 3), thresholds=(0.8, 0.75))
    found = report(baseline, model)
    assert [way["thresholds"] for way in found.as_dict()["ways"]] == [[0.92, 0.8], [0.8, 0.75]]
    text = printed(found)
    assert "0.92 → 0.80" in text
    assert "Thresholds learn" in text
    assert "Thresholds learn" not in printed(report(replace(baseline, thresholds=(0.92, 0.92))))

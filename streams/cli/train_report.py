"""What `pml train` and `pml model show` print of a model: its learners and its test side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pml.streams.cli.output import print_table, say

CALL_COLUMNS = ("how a call ends", "AUC", "Brier")
SERVED = (("hit@1", "hit_1"), ("hit@3", "hit_3"), ("Brier", "brier"))
COLUMNS = ("learner", "hit@1", "hit@3", "MRR", "Brier", "hit@1 less that of *")


def print_manifest(manifest: Mapping[str, Any]) -> None:
    """The table of a model's learners, which one serves and why, and what the test side said."""
    about = manifest["data"]
    title = (
        f"{manifest['model_id']}: {about['runs']} runs of {about['sessions']} sessions, "
        f"{about['questions']} questions, seed {manifest['seed']}"
    )
    print_table(COLUMNS, learner_rows(manifest), title)
    say(f"serves: {manifest['reason']}")
    print_passing(manifest)
    if manifest.get("reads_looks"):
        say("it reads what the latest call's arguments look like: validation was better with them")
    before, after = manifest["calibration"]["before"], manifest["calibration"]["after"]
    say(
        f"confidence: expected error {before['expected_error']:.3f} before calibration, "
        f"{after['expected_error']:.3f} after; Brier {before['brier']:.3f}, {after['brier']:.3f}"
    )
    if recalled := manifest.get("recalled"):
        say(_recalled(recalled))
    print_served(manifest)
    if calls := manifest.get("call_success"):
        _print_calls(calls)
    say(_tested(manifest["test"], manifest["serves"]))
    taken = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in manifest["phases_s"].items())
    say(f"took: {taken}")


def learner_rows(found: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """A row for each learner: `*` the best baseline, `>` what serves."""
    for name, row in found["validation"].items():
        marks = f"{'> ' if name == found['serves'] else ''}{name}{' *' if name == found['baseline'] else ''}"
        cells = [_cell(row[column]) for column in ("hit_1", "hit_3", "mrr", "brier")]
        yield marks, *cells, gained(found["gains"].get(name))


def print_passing(found: Mapping[str, Any]) -> None:
    """What messages along the hypergraph gave the attention model, where it was compared."""
    given = found.get("message_passing")
    if given is None:
        return
    verdict = "they pay" if given["interval"][0] > 0 else "they do not surely pay"
    say(f"messages along the hypergraph: {gained(given)} in hit@1 over the head alone: {verdict}")


def print_served(found: Mapping[str, Any]) -> None:
    """How good what serves is as a whole; manifests of before do not say it."""
    if served := found.get("served"):
        say(f"served, calibrated and with what recurs: {_whole(served)}")


def _whole(served: Mapping[str, Any]) -> str:
    cells = (f"{name} {_cell(served[key])}" for name, key in SERVED)
    return f"{', '.join(cells)}; {gained(served['gain'])} in hit@1 over the baseline"


def _recalled(recalled: Mapping[str, Any]) -> str:
    told = (
        f"recalled: {recalled['right'] / recalled['questions']:.0%} right in {recalled['questions']} "
        "questions of sessions that others had begun with the same elements and text"
    )
    latest = recalled.get("latest")
    if latest is None:
        return told
    given, verdict = (
        latest["gain"],
        "it serves" if recalled.get("used", True) else "surely worse, so it does not serve",
    )
    return (
        f"{told}; of the latest fifth it answers {latest['answered']} of {latest['questions']} and "
        f"{latest['ends']} ends: "
        f"{gained(given)} in hit@1, {given['brier']:+.3f} in Brier: {verdict}"
    )


def _print_calls(calls: Mapping[str, Any]) -> None:
    """What the look of arguments says of how a call ends, beside what its tool alone says."""
    rows = [(name, f"{row['auc']:.3f}", _cell(row["brier"])) for name, row in calls["learners"].items()]
    print_table(CALL_COLUMNS, rows, f"{calls['calls']:,} calls")
    low, high = calls["gain"]["interval"]
    used = "they count in confidence" if calls["used"] else "not surely better, so they do not count"
    say(f"arguments lower the Brier score by {calls['gain']['brier']:.3f} [{low:.3f}, {high:.3f}]: {used}")


def _cell(found: Mapping[str, Any]) -> str:
    low, high = found["interval"]
    return f"{found['mean']:.3f} [{low:.3f}, {high:.3f}]"


def gained(found: Mapping[str, Any] | None) -> str:
    """A gain in hit@1 with its interval."""
    if found is None:
        return ""
    low, high = found["interval"]
    return f"{found['hit_1']:+.3f} [{low:+.3f}, {high:+.3f}]"


def _tested(test: Mapping[str, Any], serves: str) -> str:
    if "learners" not in test:
        return "test side: it asks nothing, so nobody looked at it"
    hits = _cell(test["learners"][serves]["hit_1"])
    told = (
        f"test side {test['hash'][:12]}, opened {test['openings']} times by now: {serves} hit@1 {hits} "
        f"in {test['questions']} questions, {gained(test['gain'])} over the baseline"
    )
    served = test.get("served")
    return told if served is None else f"{told}; as served {_whole(served)}"

"""Mutants of what is begun because it was predicted: each of its conditions broken, one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pml.processors.speculation import planner, predictions
from pml.processors.workflow import predicting
from pml.processors.workflow.graph import Graph
from tests.simulation.mutant import Mutant, Patch


def _any_tool_may() -> list[Patch]:
    def may_be_early(granted: Any, from_results: bool) -> Any:
        return replace(real(granted, from_results=from_results), allowed=True)

    real = predictions.may_be_early
    return [(predictions, "_may_ever", lambda draft, node: True), (predictions, "may_be_early", may_be_early)]


def _nothing_known_from_results() -> list[Patch]:
    """What was predicted is taken for something that the agent itself wrote."""

    def may_be_early(granted: Any, from_results: bool) -> Any:
        return real(granted, from_results=False)

    real = predictions.may_be_early
    return [(predictions, "may_be_early", may_be_early)]


def _doubtful_ones_begin() -> list[Patch]:
    def verdicts(*given: Any) -> Iterator[Any]:
        for verdict in real(*given):
            begins = verdict.outcome == "below_threshold" and verdict.calls
            yield replace(verdict, outcome="begun") if begins else verdict

    real = predictions._verdicts
    return [(predictions, "_verdicts", verdicts)]


def _writes_are_forgotten() -> list[Patch]:
    return [(predictions, "_pending", lambda draft: [])]


def _budget_is_endless() -> list[Patch]:
    return [(planner, "free_budget", lambda draft: 1_000)]


def _switch_is_ignored() -> list[Patch]:
    return [(predictions, "_mode", lambda draft, run, nodes: "on")]


def _unused_ones_stay() -> list[Patch]:
    return [(predicting, "_running", lambda draft, run: [])]


def _every_branch_opens() -> list[Patch]:
    return [(Graph, "opens", lambda self, task_id, results: True)]


def _any_result_is_a_source() -> list[Patch]:
    """A call goes on with whatever waits, not with what it was written to read."""

    def sources(draft: Any, node: Any, begun: Mapping[str, Any]) -> Any:
        ready = [entry for entry in draft.session.speculations.values() if entry.result is not None]
        known = dict.fromkeys(node.depends_on, ready[-1]) if ready else begun
        return real(draft, node, known)

    real = predictions._sources
    return [(predictions, "_sources", sources)]


def _old_use_excuses() -> list[Patch]:
    """What served anybody at any time speaks for whatever goes on with it."""

    def taken(draft: Any, run: Any, entry: Any) -> set[str]:
        return {call_id for call_id, each in draft.session.speculations.items() if each.served}

    return [(predicting, "_taken", taken)]


BUSY, CACHE, CATALOG = ("crowd", "inputs", "catalog"), ("cache",), ("catalog",)
TURNS = ("turns",)

PREDICTION_MUTANTS = (
    Mutant("any tool is predicted", "§4, condition 1", BUSY, 20, _any_tool_may),
    Mutant("predicted arguments leave", "§4, condition 5", BUSY, 40, _nothing_known_from_results),
    Mutant("doubtful predictions begin", "§4, condition 4", BUSY, 20, _doubtful_ones_begin),
    Mutant("predictions forget writes", "§4, condition 3", CACHE, 160, _writes_are_forgotten),
    Mutant("predictions have no budget", "§4, condition 6", BUSY, 40, _budget_is_endless),
    Mutant("predictions ignore the switch", "§4, condition 6", CATALOG, 40, _switch_is_ignored),
    Mutant("unused predictions stay", "§4, accounts", TURNS, 40, _unused_ones_stay),
    Mutant("old use excuses", "§4, accounts", TURNS, 400, _old_use_excuses),
    Mutant("every predicted branch opens", "§4, condition 4", BUSY, 100, _every_branch_opens),
    Mutant("any result is a source", "§4, condition 2", BUSY, 40, _any_result_is_a_source),
)  # fmt: skip

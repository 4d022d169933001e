"""What is to be done anew when a run is taken up again: plain questions to its state."""

from __future__ import annotations

from collections.abc import Iterable

from pml.processors.workflow.graph import Graph
from pml.processors.workflow.state import ENDED, Run


def unfinished(run: Run, graph: Graph) -> set[str]:
    """What a retry begins with: tasks of the newest plan that failed the run, or did not get their turn.

    A failure that is safe, and one that a replan went round, stays as it is. What a program in the sandbox
    did not catch was in its last layer.
    """
    newest = len(run.replans)
    return {
        name
        for name, task in run.tasks.items()
        if graph.nodes[name].plan == newest
        and (
            (task.status == "failed" and (run.sandbox or not graph.nodes[name].safe_to_fail))
            or task.skip_reason == "run_ended"
            or task.status not in ENDED
        )
    }


def with_dependents(run: Run, graph: Graph, roots: Iterable[str]) -> tuple[str, ...]:
    """These tasks and those that were skipped because of them, in the order of layers."""
    found = set(roots)
    for layer in graph.layers:
        for name in layer:
            skipped = run.task(name).skip_reason == "dependency_failed"
            if skipped and found & graph.nodes[name].depends_on:
                found.add(name)
    return tuple(name for layer in graph.layers for name in layer if name in found)


def undecided(run: Run, graph: Graph) -> tuple[str, ...]:
    """Decisions that could not be evaluated: they are asked again."""
    return tuple(name for name in graph.decisions if run.decisions.get(name) == "error")


def layer_before(run: Run, graph: Graph, opened: Iterable[str]) -> int:
    """The last layer that stays released when these tasks are opened again."""
    again = set(opened)
    open_layers = [number for number, layer in enumerate(graph.layers) if not again.isdisjoint(layer)]
    return min([run.layer, *(number - 1 for number in open_layers)])

"""Small workflows with times that never coincide, as hypothesis draws them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from benchmarks.speculation.conversion import SourceWorkflow, convert

TASKS_MAX = 8


@st.composite
def workflows(draw: Any) -> tuple[SourceWorkflow, tuple[float, ...]]:
    """A workflow and the whole milliseconds that its tools take, in seconds: any two sums of them differ."""
    count = draw(st.integers(1, TASKS_MAX))
    names = [f"t{number}" for number in range(count)]
    tasks, edges = [], []
    for number, name in enumerate(names):
        before = draw(st.lists(st.sampled_from(names[:number]), unique=True, max_size=3)) if number else []
        sources = [other for other in before if draw(st.booleans())]
        edges += [[other, name] for other in before]
        arguments = {"input": {"type": "reference", "expression": "", "from": sources}} if sources else {}
        tasks.append({"id": name, "tool": draw(st.sampled_from(["read", "write"])), "arguments": arguments})
    record = {"id": "drawn", "tasks": tasks, "edges": edges}
    # Binary digits of their own far behind the first ones: no two sums of latencies are the same.
    latencies = [draw(st.integers(1, 40)) * 1_000 + 2**number for number in range(count)]
    source = convert("drawn", record, {"read": True, "write": False})
    return source, tuple(latency / 1_000 for latency in latencies)

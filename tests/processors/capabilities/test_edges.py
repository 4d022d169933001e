"""Which edges of the tool graph a run of a capability goes along."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pml.processors.capabilities.edges import (
    EDGES_OF_A_RUN_MAX,
    FIELDS_MAX,
    TOGETHER_MAX,
    EdgeKey,
    edges_of_run,
    with_fields,
)
from pml.schemas.catalog import Capability

CAP = "cap_000000000001"
INNER = "cap_000000000002"


def record(*tasks: dict[str, Any], **said: Any) -> Capability:
    return Capability.model_validate(
        {"tenant": "local", "name": "own", "capability_id": CAP, "tasks": tasks, **said}
    )


def reads(expression: str) -> dict[str, str]:
    return {"type": "reference", "expression": expression}


def found(
    capability: Capability, *path: str, known: tuple[Capability, ...] = ()
) -> set[tuple[str, str, str]]:
    return {(key.type, key.source, key.target) for key in edges(capability, *path, known=known)}


def edges(capability: Capability, *path: str, known: tuple[Capability, ...] = ()) -> dict[EdgeKey, Any]:
    names = {item.name: item for item in known} | {item.capability_id: item for item in known}
    return edges_of_run(capability, path, names.get)


READ = {"id": "n1", "tool": "files:read"}
WRITE = {"id": "n2", "tool": "files:write", "arguments": {"text": reads("n1.content[0].text")}}
NOTE = {"id": "n3", "tool": "notes:add", "depends_on": ["n2"]}


def test_a_workflow_says_what_waits_and_what_is_given() -> None:
    assert found(record(READ, WRITE, NOTE), "n1", "n2", "n3") == {
        ("contains", CAP, "files:read"),
        ("contains", CAP, "files:write"),
        ("contains", CAP, "notes:add"),
        ("provides", "files:read", "files:write"),
        ("dependency", "files:write", "notes:add"),
        ("co_occurrence", "files:read", "files:write"),
        ("co_occurrence", "files:read", "notes:add"),
        ("co_occurrence", "files:write", "notes:add"),
    }


def test_the_order_of_a_program_is_a_sequence() -> None:
    named = found(record(READ, WRITE, NOTE, source="code"), "n1", "n2", "n3")
    assert ("sequence", "files:write", "notes:add") in named
    assert not any(kind == "dependency" for kind, _, _ in named)


def test_what_did_not_run_teaches_nothing() -> None:
    assert found(record(READ, WRITE, NOTE), "n1", "n3") == {
        ("contains", CAP, "files:read"),
        ("contains", CAP, "notes:add"),
        ("co_occurrence", "files:read", "notes:add"),
    }
    assert found(record(READ, WRITE, NOTE)) == set()


def test_a_field_and_its_argument_are_told() -> None:
    known = edges(record(READ, WRITE), "n1", "n2")
    assert known[EdgeKey("provides", "files:read", "files:write")] == (("content", "text"),)
    whole = {**WRITE, "arguments": {"text": reads("n1")}}
    known = edges(record(READ, whole), "n1", "n2")
    assert known[EdgeKey("provides", "files:read", "files:write")] == ((None, "text"),)


def test_what_is_computed_from_a_result_is_given_by_it_without_a_field() -> None:
    computed = {"type": "expression", "code": "n1.count + 1", "expression": "n1.count + 1"}
    in_code = {"type": "expression", "code": "f(v1)", "names": {"v1": reads("n1.count")}}
    for argument in (computed, in_code):
        known = edges(record(READ, {**WRITE, "arguments": {"count": argument}}), "n1", "n2")
        assert known[EdgeKey("provides", "files:read", "files:write")] == ()


def test_a_branch_waits_for_what_its_decision_reads() -> None:
    branch = {"id": "n2", "tool": "files:write", "condition": {"node": "d1", "outcome": "true"}}
    decided = {"decisions": [{"id": "d1", "expression": "n1.count > 0"}]}
    assert ("dependency", "files:read", "files:write") in found(
        record(READ, branch, **decided), "n1", "d1", "n2"
    )


def test_a_called_capability_is_contained_and_its_own_edges_are_gone_along_too() -> None:
    inner = record({"id": "n1", "tool": "web:fetch"}, {**WRITE, "id": "n2"}, capability_id=INNER, name="peek")
    outer = record(
        {"id": "c1", "capability": "peek"}, {"id": "n1", "tool": "notes:add", "depends_on": ["c1"]}
    )
    assert found(outer, "c1__n1", "c1__n2", "n1", known=(inner,)) == {
        ("contains", CAP, INNER),
        ("contains", CAP, "notes:add"),
        ("contains", INNER, "web:fetch"),
        ("contains", INNER, "files:write"),
        ("provides", "web:fetch", "files:write"),
        ("dependency", INNER, "notes:add"),
        ("co_occurrence", "files:write", "notes:add"),
        ("co_occurrence", "files:write", "web:fetch"),
        ("co_occurrence", "notes:add", "web:fetch"),
    }


def test_one_that_cannot_be_found_is_called_as_it_was_written() -> None:
    outer = record({"id": "c1", "capability": "peek"}, READ)
    assert ("contains", CAP, "peek") in found(outer, "c1__n1", "n1")


def test_capabilities_that_call_each_other_come_to_an_end() -> None:
    outer = record({"id": "c1", "capability": "own"}, READ)
    path = ["__".join(["c1"] * depth + ["n1"]) for depth in range(9)]
    assert ("contains", CAP, "files:read") in found(outer, *path, known=(outer,))


def test_items_of_a_fan_out_are_one_call() -> None:
    assert ("contains", CAP, "files:read") in found(record(READ), "n1#0", "n1#1")


def test_a_tool_has_no_edge_to_itself() -> None:
    again = {"id": "n2", "tool": "files:read", "depends_on": ["n1"]}
    assert found(record(READ, again), "n1", "n2") == {("contains", CAP, "files:read")}


def test_an_expression_that_the_sanitiser_changed_teaches_nothing_and_breaks_nothing() -> None:
    broken = {"id": "n2", "tool": "files:write", "arguments": {"text": reads("[REDACTED]")}}
    decided = {"decisions": [{"id": "d1", "expression": "[REDACTED"}]}
    branch = {"id": "n3", "tool": "notes:add", "condition": {"node": "d1", "outcome": "true"}}
    kinds = {kind for kind, _, _ in found(record(READ, broken, branch, **decided), "n1", "n2", "n3")}
    assert kinds == {"contains", "co_occurrence"}


def test_a_run_teaches_no_more_than_its_bound() -> None:
    tasks = [
        {"id": f"n{one}", "tool": f"a:t{one}", "depends_on": [f"n{other}" for other in range(one)]}
        for one in range(60)
    ]
    path = [f"n{one}" for one in range(60)]
    named = found(record(*tasks), *path)
    assert len(named) == EDGES_OF_A_RUN_MAX
    few = found(record(*({**task, "depends_on": []} for task in tasks)), *path)
    assert sum(kind == "co_occurrence" for kind, _, _ in few) == TOGETHER_MAX * (TOGETHER_MAX - 1) // 2


def test_fields_are_bounded_and_the_first_stay() -> None:
    many = [(f"f{number}", "text") for number in range(20)]
    assert with_fields((), many) == tuple(many[:FIELDS_MAX])
    assert with_fields((many[3],), many) == (many[3], *many[:3], *many[4:FIELDS_MAX])


SHAPES = st.lists(
    st.tuples(
        st.sampled_from(["a:x", "a:y", "b:z", "b:w"]),
        st.sets(st.integers(0, 5), max_size=3),
        st.sets(st.integers(0, 5), max_size=3),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


@given(SHAPES, st.booleans())
def test_edges_are_those_of_a_twin_that_looks_at_every_pair(shape: list[Any], code: bool) -> None:
    tasks = [
        {
            "id": f"n{place}",
            "tool": tool,
            "depends_on": [f"n{other}" for other in waits if other < place],
            "arguments": {f"a{other}": reads(f"n{other}.out") for other in takes if other < place},
        }
        for place, (tool, waits, takes, _) in enumerate(shape)
    ]
    ran = [place for place, (_, _, _, runs) in enumerate(shape) if runs]
    twin = {("contains", CAP, shape[place][0]) for place in ran}
    for one in ran:
        for other in ran:
            source, target = shape[one][0], shape[other][0]
            if source == target:
                continue
            twin.add(("co_occurrence", *sorted((source, target))))  # type: ignore[arg-type]
            if one < other and one in shape[other][1]:
                twin.add(("sequence" if code else "dependency", source, target))
            if one < other and one in shape[other][2]:
                twin.add(("provides", source, target))
    capability = record(*tasks, source="code" if code else "dag")
    assert found(capability, *(f"n{place}" for place in ran)) == twin

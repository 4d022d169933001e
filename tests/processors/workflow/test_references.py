"""References into results: what they may look like, and where they lead."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.workflow.references import InvalidReference, Missing, alternative, nodes_of, parse, walk


def look_up(expression: str, results: dict[str, Any]) -> Any:
    """The value of a reference, or how it leads nowhere."""
    path = alternative(expression, results)
    return path if isinstance(path, Missing) else walk(results[path.node], path)


RESULTS: dict[str, Any] = {
    "n1": {"items": [{"id": 7}, {"id": None}], "a-b": 1, "a b": 2, "it's": 3, 'say "x"': 4, "": 5, "0": 6},
    "n2": "text",
    "n3": None,
    "c1/n1": {"x": 8},
    "n3#0": {"x": 9},
}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("n2", "text"),
        ("n3", None),
        ("n1.items", RESULTS["n1"]["items"]),
        ("n1.items[0].id", 7),
        ("n1.items[1].id", None),
        (" n1.items[0]['id'] ", 7),
        ("n1.a-b", 1),
        ('n1["a b"]', 2),
        (r"n1['it\'s']", 3),
        (r'n1["say \"x\""]', 4),
        ('n1[""]', 5),
        ("n1['0']", 6),
        ("c1/n1.x", 8),
        ("n3#0.x", 9),
        ("n9.x|n2", "text"),
        ("n9 | n1.items[0].id | n2", 7),
    ],
)
def test_a_reference_leads_to_its_value(expression: str, value: Any) -> None:
    assert look_up(expression, RESULTS) == value


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("n9.x", "n9 gave no result"),
        ("n8|n9", "n8 and n9 gave no result"),
        ("n1.nothing", "'nothing' leads nowhere"),
        ("n1.items[2]", "2 leads nowhere"),
        ("n1.items.id", "'id' leads nowhere"),
        ("n1[0]", "0 leads nowhere"),
        ("n2[0]", "0 leads nowhere"),
        ("n3.x", "'x' leads nowhere"),
        # The alternative that ran counts, even where it has no such field.
        ("n1.nothing|n2", "'nothing' leads nowhere"),
    ],
)
def test_a_reference_that_leads_nowhere_says_where_it_ended(expression: str, says: str) -> None:
    found = look_up(expression, RESULTS)
    assert isinstance(found, Missing)
    assert says in found.reason


def test_a_reference_that_leads_nowhere_is_told_as_it_was_written() -> None:
    found = look_up("n1.items[2].id", RESULTS)
    assert found == Missing("n1 has no .items[2].id: 2 leads nowhere")


@pytest.mark.parametrize(
    "expression", ["", ".x", "n1.", "n1..x", "n1[x]", "n1[-1]", "n1['x", "n1|", "|n1", "n1 n2", "n1 .x", "9n"]
)
def test_what_is_no_reference_is_refused(expression: str) -> None:
    with pytest.raises(InvalidReference):
        parse(expression)


def test_all_alternatives_are_dependencies() -> None:
    assert nodes_of("n2.x | n3['|n4'] | c1/n1") == {"n2", "n3", "c1/n1"}


STEPS = st.lists(st.one_of(st.integers(0, 99), st.text(max_size=12)), max_size=6)


@given(steps=STEPS, value=st.one_of(st.none(), st.integers(), st.text()))
def test_whatever_path_is_written_down_is_walked(steps: list[int | str], value: Any) -> None:
    """The twin builds the value around the path, innermost first."""
    result = value
    for step in reversed(steps):
        result = {step: result} if isinstance(step, str) else [None] * step + [result]
    written = "".join(f"[{step}]" if isinstance(step, int) else f"[{_quoted(step)}]" for step in steps)
    assert look_up(f"n1{written}", {"n1": result}) == value


def _quoted(key: str) -> str:
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@given(text=st.text(max_size=40))
def test_parsing_never_fails_in_another_way(text: str) -> None:
    try:
        paths = parse(text)
    except InvalidReference:
        return
    assert paths
    assert all(path.node for path in paths)

"""What speaks for a value is read where the text mentions it, and from its source."""

from __future__ import annotations

import numpy as np
import pytest

from pml.processors.learning.argument_candidates import LEFT_OUT, Candidate, candidates
from pml.processors.learning.argument_context import NAMES, described
from pml.processors.learning.parameters import Parameter
from pml.processors.learning.scene import Past, scene, taken_apart

TEXT = "Add 3 tasks, then calculate the sales tax for an amount of 500 with a tax rate of 7%, and tip $20"


def parameter(name: str, kind: str = "number") -> Parameter:
    return Parameter("shop:calculate_sales_tax", name, kind, True, (), None, ())


def told(name: str, value: bytes, general: str = "text number next 1") -> dict[str, float]:
    (row,) = described(scene([], TEXT), parameter(name), [Candidate(value, general, general)])
    return dict(zip(NAMES, row.tolist(), strict=True))


def test_the_words_around_a_mention_name_its_parameter() -> None:
    amount, rate = told("amount", b"500"), told("tax_rate", b"500")
    assert (amount["named_before"], amount["nearest_name"]) == (1, 0.5)
    assert (rate["named_before"], rate["named_after"]) == (0.5, 0.5)
    assert told("tax_rate", b"7")["named_before"] == 1
    assert told("tax_rate", b"3")["named_before"] == 0


def test_signs_beside_a_mention_are_seen() -> None:
    assert [told("x", value)["percent"] for value in (b"7", b"500")] == [1, 0]
    assert [told("x", value)["money"] for value in (b"20", b"500")] == [1, 0]


def test_the_clause_that_names_the_tool_is_the_best_one() -> None:
    assert [told("x", value)["clause_best"] for value in (b"500", b"3")] == [0, -1]


def test_what_the_text_does_not_say_has_no_mention() -> None:
    for value in (b"41", b"50", b"true", LEFT_OUT):
        row = told("amount", value)
        assert [row[name] for name in ("mentions", "named_before", "clause", "how_far")] == [0] * 4
    assert told("amount", b'"sales tax"')["mentions"] == 1


def test_what_earlier_arguments_used_is_behind() -> None:
    past = [taken_apart(Past("shop:add", {"count": 3}, {"total": 9}))]
    before = scene(past, TEXT)
    offered = [Candidate(b"3", "argument other 1", ""), Candidate(b"500", "text number next 1", "")]
    rows = [dict(zip(NAMES, row.tolist(), strict=True)) for row in described(before, parameter("n"), offered)]
    assert [row["used"] for row in rows] == [1, 0]
    assert [row["behind_reached"] for row in rows] == [0, 1]
    assert [(row["argument"], row["text"], row["next 1"]) for row in rows] == [(1, 0, 0), (0, 1, 1)]


@pytest.mark.parametrize(
    ("general", "expected"),
    [
        ("argument own same 2", {"argument": 1, "relation": 1, "recency": 0.5, "own": 1}),
        ("result part 1 only", {"result": 1, "relation": 0.5, "recency": 1, "own": 0}),
        ("constant in the text", {"constant": 1, "relation": 0, "recency": 0}),
        ("left out", {"left": 1, "only": 0}),
    ],
)
def test_a_source_is_taken_apart(general: str, expected: dict[str, float]) -> None:
    row = told("amount", b"1", general)
    assert {name: row[name] for name in expected} == expected


def test_every_candidate_has_a_row_of_numbers() -> None:
    before = scene([taken_apart(Past("shop:add", {"path": "a.md"}, [{"id": 7}, {"id": 8}]))], TEXT)
    for wanted in (parameter("id", "any"), parameter("path", "string"), parameter("flag", "boolean")):
        offered = candidates(before, wanted)
        rows = described(before, wanted, offered)
        assert rows.shape == (len(offered), len(NAMES))
        assert np.all(np.isfinite(rows))


PLAN = "Calculate the area of a circle, validate the mail, then encrypt the area with the key"


def owned(field: str, general: str, values: dict[str, str]) -> dict[str, dict[str, float]]:
    """What is known of the results of two calls, by value, for what `encrypt` is to get."""
    past = [
        Past("shop:calculate_area", {"radius": 5}, {"area": values["area"]}),
        Past("shop:validate_mail", {"mail": "a@b.org"}, {"valid": values["valid"]}),
    ]
    before = scene([taken_apart(each) for each in past], PLAN)
    wanted = Parameter("shop:encrypt", field, "string", True, (), None, ())
    offered = [each for each in candidates(before, wanted) if each.general.startswith(general)]
    rows = described(before, wanted, offered)
    return {
        each.value.decode().strip('"'): dict(zip(NAMES, row.tolist(), strict=True))
        for each, row in zip(offered, rows, strict=True)
    }


def test_the_clause_that_asks_for_a_tool_says_whose_result_it_takes() -> None:
    rows = owned("data", "result", {"area": "78", "valid": "yes"})
    assert [rows[name]["field_asked"] for name in ("78", "yes")] == [1, 0]
    assert [rows[name]["owner_asked"] for name in ("78", "yes")] == pytest.approx([1 / 3, 0])
    assert [rows[name]["field_said"] for name in ("78", "yes")] == [1, 0]
    assert [rows[name]["untaken"] for name in ("78", "yes")] == [1, 1]


def test_a_mention_in_the_clause_that_asks_for_a_tool_is_told_from_others() -> None:
    text = "pay 20 for Ada, calculate the sales tax of 500, send 7 mails"
    before = scene([], text)
    offered = [Candidate(value, "text number next 1", "") for value in (b"20", b"500", b"7")]
    rows = [dict(zip(NAMES, row.tolist(), strict=True)) for row in described(before, parameter("x"), offered)]
    assert [row["in_asked"] for row in rows] == [0, 1, 0]
    assert [row["after_asked"] for row in rows] == [0, 0, 1]


def test_what_the_parameter_had_before_and_what_was_taken_up_is_seen() -> None:
    past = [
        Past("shop:find", {"query": "Boston"}, {"id": "b1"}),
        Past("shop:open", {"id": "b1"}, {"open": True}),
    ]
    before = scene([taken_apart(each) for each in past], "find Boston and Paris")
    wanted = Parameter("shop:find", "query", "string", True, (), None, ())
    offered = candidates(before, wanted)
    rows = {
        each.value: dict(zip(NAMES, row.tolist(), strict=True))
        for each, row in zip(offered, described(before, wanted, offered), strict=True)
    }
    assert [rows[value]["again"] for value in (b'"Boston"', b'"Paris"')] == [1, 0]
    assert [element.taken for element in before.past] == [False, True]

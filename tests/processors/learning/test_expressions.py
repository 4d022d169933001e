"""Arithmetic that a text writes down is found as it is written; days, telephones and ranges are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.learning.expressions import expressions

NUMBERS = st.integers(-999, 999).map(str) | st.decimals(0, 99, places=2).map(str)
OPERATORS = st.sampled_from([" + ", "*", " - ", "^", " / ", "+"])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("calculate (4*2)/(1+3)?", ["(4*2)/(1+3)"]),
        (
            "do it: (23+7)*3-42/6. Then 155.33 - 147.05 + 268.77",
            ["(23+7)*3-42/6", "155.33 - 147.05 + 268.77"],
        ),
        ("the sum (that is 3+4) of it", ["3+4"]),
        ("((1+2)", ["(1+2)"]),
        ("2^10 and -3 * -4", ["2^10", "-3 * -4"]),
        ("on 2024-08-15 call 555-1234, +1 555-123-4567, at 120/80 or 10/05/2023, v1.2-3", []),
        ("3 apples + 4 pears, C++, a+b, 7", []),
        ("rows 10-20 of a1+2b", []),
    ],
)
def test_expressions_are_read(text: str, found: list[str]) -> None:
    told = expressions(text)
    assert [span.text for span in told] == found
    assert [text[span.start : span.end] for span in told] == found


@given(st.lists(st.tuples(NUMBERS, OPERATORS), min_size=1, max_size=6), NUMBERS)
def test_every_sum_is_found_whole(parts: list[tuple[str, str]], last: str) -> None:
    written = f"({''.join(number + sign for number, sign in parts)}{last})"
    assert [span.text for span in expressions(f"what is {written}, please?")] == [written]


@given(st.text("0123456789+-*/^(). ", max_size=200))
def test_what_is_found_is_of_the_text_and_balanced_at_its_ends(text: str) -> None:
    for span in expressions(text):
        assert text[span.start : span.end] == span.text
        assert not (span.text.startswith("(") and span.text.count("(") > span.text.count(")"))
        assert not (span.text.endswith(")") and span.text.count(")") > span.text.count("("))

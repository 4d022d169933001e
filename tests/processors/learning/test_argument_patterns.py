"""Patterns say what arguments look like and no value; success is learned of them where they decide it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pml.processors.learning.argument_patterns import (
    ARGUMENTS_MOST,
    CATEGORIES_MOST,
    features_of,
    pattern_of,
)
from pml.processors.learning.argument_success import ArgumentSuccess
from pml.schemas.argument_pattern import ArgumentPattern
from pml.schemas.base import Json
from pml.schemas.canonical import value_hash

KEY = b"k" * 32
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False)
    | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=4,
)


@pytest.mark.parametrize(
    ("arguments", "extension", "path", "channel"),
    [
        ({"path": "reports/2024.JSON"}, ".json", True, False),
        ({"path": "docs"}, None, True, False),
        ({"source": "a.txt", "target": "b.xml"}, ".txt", True, False),
        ({"files": ["x", "~/y.csv"]}, ".csv", True, False),
        ({"file_name": "Makefile"}, None, True, False),
        ({"url": "https://example.org/a.json", "mail": "ada@example.org"}, None, False, False),
        ({"to": "#prod", "text": "we are at 3.5 now"}, None, False, True),
        ({"channel_id": "C042"}, None, False, True),
        ({"colour": "#a1", "note": "see #prod and #dev"}, None, False, True),
        ({"count": 3}, None, False, False),
        ({}, None, False, False),
    ],
)
def test_paths_extensions_and_channels_are_seen(
    arguments: dict[str, Json], extension: str | None, path: bool, channel: bool
) -> None:
    found = pattern_of(arguments, KEY)
    assert (found.file_extension, found.has_file_path, found.has_channel_ref) == (extension, path, channel)
    assert found.argument_count == len(arguments)


def test_types_and_hashed_categories_are_told_by_name() -> None:
    found = pattern_of(
        {"mode": "full", "text": "a long sentence", "force": True, "n": 2, "x": 0.5, "o": {}}, KEY
    )
    assert found.types == {
        "mode": "string",
        "text": "string",
        "force": "boolean",
        "n": "integer",
        "x": "number",
        "o": "object",
    }
    assert found.categories == {
        name: value_hash(value, KEY)[:8] for name, value in (("mode", "full"), ("force", True), ("n", 2))
    }
    assert pattern_of({"mode": "full"}, b"o" * 32).categories != {"mode": found.categories["mode"]}


@settings(max_examples=20, derandomize=True, deadline=None)
@given(st.dictionaries(st.text(max_size=12), VALUES, max_size=20))
def test_a_pattern_is_bounded_and_survives_the_log(arguments: dict[str, Any]) -> None:
    found = pattern_of(arguments, KEY)
    assert len(found.types) <= ARGUMENTS_MOST
    assert len(found.categories) <= CATEGORIES_MOST
    assert ArgumentPattern.model_validate_json(found.model_dump_json(exclude_none=True)) == found
    assert pattern_of(dict(reversed(arguments.items())), KEY) == found
    assert features_of("a:b", found.model_dump(exclude_none=True)) == features_of("a:b", found)


def area(scores: NDArray[np.float64], success: NDArray[np.bool_]) -> float:
    """Under the receiver's curve: how often one that succeeded has the higher score, ties half."""
    good, bad = scores[success][:, None], scores[~success][None, :]
    return float(((good > bad) + 0.5 * (good == bad)).mean())


def planted(seed: int, by: str) -> tuple[list[str], list[ArgumentPattern], NDArray[np.bool_]]:
    """Calls of two tools whose file's extension, or whose channel, decides nearly always how they end."""
    draws, calls = np.random.default_rng(seed), 400
    tools = [str(tool) for tool in draws.choice(["a:send", "a:read"], calls)]
    chosen = draws.integers(4, size=calls)
    patterns = [
        pattern_of(
            {"path": f"reports/{draws.integers(1000)}.{('json', 'xml', 'csv', 'txt')[each]}"}
            if by == "extension"
            else {"channel": ("#prod", "#dev", "#ops", "#all")[each], "text": f"it is {draws.random()} now"},
            KEY,
        )
        for each in chosen
    ]
    return tools, patterns, (chosen < 2) ^ (draws.random(calls) < 0.03)


@pytest.mark.parametrize("by", ["extension", "channel"])
def test_where_only_extension_or_channel_decides_patterns_tell_and_tools_do_not(by: str) -> None:
    tools, patterns, success = planted(1, by)
    later_tools, later, truth = planted(2, by)
    with_patterns = ArgumentSuccess.fit(tools, patterns, success)
    without = ArgumentSuccess.fit(tools, [None] * len(tools), success)
    assert area(with_patterns.probabilities(later_tools, later), truth) >= 0.9
    assert area(without.probabilities(later_tools, [None] * len(later)), truth) <= 0.6
    again = ArgumentSuccess.from_arrays(with_patterns.to_arrays())
    told = [each.model_dump(exclude_none=True) for each in later]
    assert np.array_equal(
        again.probabilities(later_tools, told), with_patterns.probabilities(later_tools, later)
    )


def test_of_nothing_nothing_is_learned_and_lengths_must_fit() -> None:
    nothing = ArgumentSuccess.fit([], [], np.zeros(0, dtype=np.bool_))
    assert nothing.probabilities(["a:b"], [None]).tolist() == [0.5]
    with pytest.raises(ValueError, match="a pattern and an end"):
        ArgumentSuccess.fit(["a:b"], [], np.zeros(1, dtype=np.bool_))

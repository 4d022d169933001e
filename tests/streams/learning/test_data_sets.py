"""A set is read from its open part alone, with what was visible before each call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pml.processors.learning.traces import NO_TEXT
from pml.streams.learning.data_sets import kept_together, named_sets, recorded
from tests.streams.learning.recorded_sets import row, written


def test_later_turns_are_not_visible(tmp_path: Path) -> None:
    written(tmp_path, "bfcl_multi_turn", [row(1, ["a", "b", "c"], turns=["one", "two", "three"])], ["a"])
    data = recorded(tmp_path, "bfcl_multi_turn").sessions
    assert [data.texts[number] for number in data.traces.texts] == ["one", "one", "one two"]


def test_a_hidden_script_is_not_visible(tmp_path: Path) -> None:
    written(tmp_path, "tau", [row(1, ["a", "b"], domain="air"), row(2, [], domain="air")], ["a"])
    data = recorded(tmp_path, "tau").sessions
    called = [data.vocabulary.name(item) for item in data.traces.items.tolist()]
    assert (called, data.texts, data.traces.texts.tolist()) == (["a", "b"], (), [NO_TEXT] * 2)


def test_the_same_calls_are_one_group_and_so_is_what_the_source_keeps(tmp_path: Path) -> None:
    rows = [row(1, ["a", "b"]), row(2, ["a", "b"]), row(3, ["b"]), row(4, ["b", "a"])]
    for each, main in zip(rows, ("m", "n", "n", "o"), strict=True):
        each["main"] = main
    written(tmp_path, "toollinkos", rows, ["a", "b"])
    assert recorded(tmp_path, "toollinkos").sessions.traces.groups.tolist() == [0, 0, 0, 3]


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        (
            "tau",
            {"id": "tau1-retail-test-4", "domain": "retail", "part": "test"},
            {"id": "tau2-retail-4", "domain": "retail"},
        ),
        ("bfcl_multi_turn", {"id": "multi_turn_base_7"}, {"id": "multi_turn_long_context_7"}),
        ("tau_sessions", {"id": "airline-2-trial0", "task_id": 2}, {"id": "airline-2-trial1", "task_id": 2}),
        ("galaxy_iwc", {"id": "iwc-3-s9", "file": "f"}, {"id": "iwc-3", "file": "f"}),
    ],
)
def test_what_a_source_keeps_on_one_side(name: str, one: dict[str, Any], other: dict[str, Any]) -> None:
    assert kept_together(name, one) == kept_together(name, other)
    assert kept_together("n8n", one) != kept_together("n8n", other)


def test_a_tool_without_a_description_has_no_text(tmp_path: Path) -> None:
    written(tmp_path, "nestful", [row(1, ["a", "gone"])], ["a"])
    data = recorded(tmp_path, "nestful").sessions
    assert data.vocabulary.names == ("a", "gone")
    assert [bool(text) for text in data.described()] == [False, True, False]
    assert data.listed == ("a",)


def test_only_sets_whose_texts_are_known_are_named(tmp_path: Path) -> None:
    written(tmp_path, "tau", [], [])
    written(tmp_path, "mine", [], [])
    assert named_sets(tmp_path) == ("tau",)

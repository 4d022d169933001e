"""A set is read from its open part alone, with what was visible before each call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from benchmarks.learning.measure import judged, row_of
from benchmarks.learning.sets import descriptions_of, kept_together, recorded
from pml.processors.learning.traces import NO_TEXT
from pml.processors.learning.vocabulary import Vocabulary
from pml.processors.memory.embedding import HashedNgrams


def written(folder: Path, name: str, rows: list[dict[str, Any]], tools: list[str]) -> None:
    place = folder / name
    place.mkdir()
    told = [{"tool_id": tool, "description": f"does {tool}"} for tool in tools]
    (place / "tools.jsonl").write_bytes(b"\n".join(map(orjson.dumps, told)))
    (place / "workflows.dev.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    (place / "workflows.holdout.jsonl").write_bytes(b"nobody may read this")


def row(number: int, tools: list[str], **more: Any) -> dict[str, Any]:
    tasks = [
        {"id": f"t{place}", "tool": tool, "arguments": {}, "turn": place} for place, tool in enumerate(tools)
    ]
    found: dict[str, Any] = {"id": f"x-{number}", "intent": f"all of {number}"}
    return found | {"tools": tools, "tasks": tasks, "edges": []} | more


def test_later_turns_are_not_visible(tmp_path: Path) -> None:
    written(tmp_path, "bfcl_multi_turn", [row(1, ["a", "b", "c"], turns=["one", "two", "three"])], ["a"])
    data = recorded(tmp_path, "bfcl_multi_turn")
    assert [data.texts[number] for number in data.text_rows] == ["one", "one", "one two"]


def test_a_hidden_script_is_not_visible(tmp_path: Path) -> None:
    written(tmp_path, "tau", [row(1, ["a", "b"], domain="air"), row(2, [], domain="air")], ["a"])
    data = recorded(tmp_path, "tau")
    assert (data.calls, data.texts, data.text_rows.tolist()) == ((("a", "b"),), (), [NO_TEXT] * 2)


def test_the_same_calls_are_one_group_and_so_is_what_the_source_keeps(tmp_path: Path) -> None:
    rows = [row(1, ["a", "b"]), row(2, ["a", "b"]), row(3, ["b"]), row(4, ["b", "a"])]
    for each, main in zip(rows, ("m", "n", "n", "o"), strict=True):
        each["main"] = main
    written(tmp_path, "toollinkos", rows, ["a", "b"])
    assert recorded(tmp_path, "toollinkos").groups.tolist() == [0, 0, 0, 3]


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
    data = recorded(tmp_path, "nestful")
    found = descriptions_of(Vocabulary.of(["a", "gone"]), data.documents)
    assert [bool(text) for text in found] == [False, True, False]


def test_every_call_but_the_first_is_asked_for_once(tmp_path: Path) -> None:
    rows = [row(number, ["a", "b", "c"], intent=f"plan {number}") for number in range(20)]
    for number, each in enumerate(rows):
        each["tasks"][0]["arguments"] = {"x": number}
    written(tmp_path, "nestful", rows, ["a", "b", "c", "d"])
    done: list[int] = []
    found = judged(tmp_path, "nestful", HashedNgrams(), 1, lambda: done.append(1))
    told = row_of(found, 1)
    assert (len(done), told["asked"], told["groups"], told["unseen"]) == (5, 40, 20, 0)
    assert told["ways"]["Markov 1"]["hit_1"] == {"mean": 1, "interval": (1, 1)}
    assert told["best_counting"] == "Markov 1"
    assert told["gains"]["ranker"] == {"hit_1": 0, "interval": (0, 0)}
    assert told["ways"]["popularity"]["hit_3"]["mean"] == 1

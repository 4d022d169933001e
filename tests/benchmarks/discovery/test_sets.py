"""Folds share neither a request nor an answer, and a set is read as it is written."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import orjson

from benchmarks.discovery.sets import FOLDS, Case, folds, groups, load
from pml.processors.memory.embedding import HashedNgrams


def case(intent: str, *right: int, together: str = "") -> Case:
    return Case(intent, (), frozenset(right), (("main", together),) if together else ())


def test_same_answers_near_requests_and_what_the_source_keeps_are_one_group() -> None:
    cases = [
        case("send a mail", 1),
        case("close the door", 1),
        case("close the door!", 2),
        case("what is new", 3, together="news"),
        case("tell me more", 4, together="news"),
        case("buy shoes", 5),
    ]
    found = groups(cases, HashedNgrams().embed([each.intent for each in cases])).tolist()
    assert found[0] == found[1] == found[2]
    assert found[3] == found[4]
    assert len(set(found)) == 3


def test_a_group_lies_in_one_fold_and_folds_are_about_the_same() -> None:
    of = np.repeat(np.arange(40), 5)
    found = folds(of, seed=1)
    assert all(len(set(found[of == group])) == 1 for group in range(40))
    assert np.bincount(found).tolist() == [40] * FOLDS
    assert found.tolist() == folds(of, seed=1).tolist()
    assert found.tolist() != folds(of, seed=2).tolist()


def test_a_set_is_read_whole_or_drawn(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    tools = [
        {"tool_id": "b:two", "description": "Two", "outputs": ["id"]},
        {"tool_id": "a:one", "description": None},
    ]
    rows = [{"intent": f"do {number}", "tools": ["b:two", "gone"], "main": "b"} for number in range(9)]
    rows += [{"intent": "nothing known", "tools": ["gone"]}, {"intent": "", "tools": ["b:two"]}]
    (folder / "tools.jsonl").write_bytes(b"\n".join(map(orjson.dumps, tools)))
    (folder / "workflows.dev.jsonl.gz").write_bytes(gzip.compress(b"\n".join(map(orjson.dumps, rows))))
    data = load(tmp_path, "small", 100, 1)
    assert [document.id for document in data.documents] == ["a:one", "b:two"]
    assert data.documents[1].gives == ("id",)
    assert [each.intent for each in data.cases] == [f"do {number}" for number in range(9)]
    assert {(each.tools, each.right) for each in data.cases} == {(("b:two",), frozenset({1}))}
    assert len(load(tmp_path, "small", 4, 1).cases) == 4

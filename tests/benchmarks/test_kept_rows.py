"""Rows that were measured stay until they are measured again, with what they were measured on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from benchmarks.kept_rows import in_order, kept_rows, measured_now

WHEN = {"commit": "0123456789ab", "measured_at": "2026-11-25T12:00:00.000000Z"}


def write(folder: Path, rows: list[dict[str, Any]], seed: int = 1) -> None:
    (folder / "sets.json").write_bytes(orjson.dumps({"seed": seed, **WHEN, "facts": {"sets": rows}}))


def test_a_row_says_of_itself_when_it_was_measured_or_its_result_does(tmp_path: Path) -> None:
    write(tmp_path, [{"name": "a"}, {"name": "b", "commit": "other"}])
    assert kept_rows("sets", 1, tmp_path) == {
        "a": {"name": "a", **WHEN},
        "b": {"name": "b", **WHEN, "commit": "other"},
    }


def test_rows_of_another_seed_are_not_kept_nor_is_there_any_before_the_first_result(tmp_path: Path) -> None:
    assert kept_rows("sets", 1, tmp_path) == {}
    write(tmp_path, [{"name": "a"}], seed=2)
    assert kept_rows("sets", 1, tmp_path) == {}


def test_what_is_measured_again_replaces_its_row_and_all_stand_in_their_order(tmp_path: Path) -> None:
    write(tmp_path, [{"name": "a", "hits": 1}, {"name": "b"}])
    now = measured_now({"name": "a", "hits": 2})
    rows = in_order({**kept_rows("sets", 1, tmp_path), "a": now}, ["b", "c", "a"])
    assert [row["name"] for row in rows] == ["b", "a"]
    assert (rows[1]["hits"], rows[1]["measured_at"] > WHEN["measured_at"]) == (2, True)

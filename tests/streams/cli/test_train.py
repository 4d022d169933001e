"""`pml train` and `pml model`, as a user types them."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from pml.schemas.errors import BrokerUnavailable, PMLError, StoreUnavailable
from pml.streams.cli.session import person
from pml.streams.client import new_id
from pml.streams.learning.curve_plot import check_writable
from pml.streams.settings import Settings
from pml.streams.topics import ensure_topics
from tests.streams.cli.conftest import Pml
from tests.streams.cli.gone_on import SESSIONS, store
from tests.streams.learning.exported import write_export
from tests.streams.learning.recorded_sets import row, written

__all__ = ["store"]


def test_a_file_is_trained_on_and_the_model_is_shown(pml: Pml, tmp_path: Path) -> None:
    write_export(tmp_path / "traces.npz", sessions=14)
    told = pml("train", "--data", "traces.npz", "--plot", "curve.png")
    assert told.exit_code == 0, told.stderr
    assert "> markov_1 *" in told.stdout
    assert "opened 1 times by now: markov_1 hit@1 1.000 [1.000, 1.000]" in told.stdout
    assert Path("curve.png").read_bytes()[:4] == b"\x89PNG"
    assert "backtest: the sessions that were kept aside have no values, as those of a file" in told.stdout
    model_id = told.stdout.split(":")[0]
    assert f"pml model promote {model_id}" in told.stderr
    assert pml("model", "show", model_id).stdout.splitlines()[:8] == told.stdout.splitlines()[:8]
    shown = orjson.loads(pml("model", "show", model_id, "--json").stdout)
    again = orjson.loads(pml("train", "--data", "traces.npz", "--json").stdout)
    assert (shown["model_id"], shown["reason"]) == (model_id, again["reason"])
    assert (again["promoted"], again["test"]["openings"]) == (False, 2)


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (["train", "--data", "gone.npz", "--no-promote"], 2, "cannot be read"),
        (["train", "--data", "gone.npz", "--no-promote", "--since", "2026-01-01"], 2, "a file has what"),
        (["train", "--since", "yesterday"], 2, "is no time such as"),
        (["train", "--data", "gone.npz", "--outcome-score", "helpful"], 2, "scores are in ClickHouse"),
        (["train", "--outcome-score", "quality>0.8"], 2, "NAME>=NUMBER"),
        (["train", "--data", ".", "--json"], 2, "none of the data sets"),
        (["train", "--data", ".", "--plot", "curve.png", "--test", "0.5"], 2, "--test, --plot: of a folder"),
        (["train", "--data", ".", "--since", "2026-01-01", "--tenant", "ann"], 2, "--since, --tenant: of"),
        (["train", "--data", ".", "--split", "time", "--learner", "markov_1"], 2, "--split, --learner: of"),
        (["train", "--watch"], 2, "--watch needs --every"),
        (["train", "--every", "6h"], 2, "--every: only with --watch"),
        (["train", "--keep", "3"], 2, "--keep: only with --watch"),
        (["train", "--memory-mb", "64", "--time-limit", "1m"], 2, "--memory-mb, --time-limit: only with"),
        (["train", "--watch", "--every", "soon"], 2, "is no duration such as"),
        (["train", "--watch", "--every", "6h", "--data", "."], 2, "--plot and data"),
        (["model", "show", "mdl_000000000000"], 1, "pml model list"),
    ],
)
def test_what_cannot_be_done_is_said(pml: Pml, arguments: list[str], exit_code: int, said: str) -> None:
    told = pml(*arguments)
    assert (told.exit_code, said in told.stderr) == (exit_code, True), told.stderr


def test_a_folder_of_data_sets_is_a_table_and_keeps_nothing(pml: Pml, tmp_path: Path) -> None:
    rows = [row(number, ["a", "b"], intent=f"plan {number}") for number in range(12)]
    for number, each in enumerate(rows):
        each["tasks"][0]["arguments"] = {"x": number}
    (tmp_path / "sets").mkdir()
    written(tmp_path / "sets", "nestful", rows, ["a", "b"])
    told = pml("train", "--data", "sets")
    assert told.exit_code == 0, told.stderr
    assert "nestful: 12 questions, 0% of what came never seen; visible was the whole request" in told.stdout
    assert "+0.000 [+0.000, +0.000]" in told.stdout.splitlines()[-1]
    assert "attention" not in told.stdout
    found = orjson.loads(pml("train", "--data", "sets", "--with-attention", "--json").stdout)
    assert [(each["set"], each["serves"] == each["baseline"]) for each in found["sets"]] == [
        ("nestful", True)
    ]
    assert {"attention", "attention_head"} < found["sets"][0]["validation"].keys()
    assert "interval" in found["sets"][0]["message_passing"]
    assert not Path(".pml/models").exists()


def test_a_watch_goes_on_after_a_failure_until_somebody_stops_it(tmp_path: Path) -> None:
    # What a shell starts in the background ignores the signal, and so does whatever that starts.
    heeding = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from pml.streams.cli import main; main()"
    )
    command = (sys.executable, "-c", heeding, "train", "--watch", "--every", "1h", "--json")
    options = ("--data", "gone.npz", "--no-promote")
    with subprocess.Popen([*command, *options], cwd=tmp_path, stdout=subprocess.PIPE) as watch:
        try:
            assert watch.stdout is not None
            told = [orjson.loads(watch.stdout.readline()) for _ in range(3)]
            watch.send_signal(signal.SIGINT)
            assert (watch.stdout.read(), watch.wait()) == (b"", 130)
        finally:
            watch.kill()
    assert [item["event"] for item in told] == ["started", "failed", "waiting"]
    assert (told[1]["code"], "gone.npz cannot be read" in told[1]["message"]) == ("TRAINING_FAILED", True)


@pytest.mark.integration
@pytest.mark.usefixtures("store")
def test_a_training_on_the_store_says_which_runs_teach_most(pml: Pml) -> None:
    told = pml("train", "--no-promote", "--learner", "markov_1", "--test", "0", "--json")
    assert told.exit_code == 0, told.stderr
    found = orjson.loads(told.stdout)
    assert (found["data"]["runs"], found["data"]["with_values"]) == (2 * SESSIONS, SESSIONS)
    assert found["backtest"] is None
    assert len(orjson.loads(pml("query", "priorities", "--json").stdout)) == 2 * SESSIONS


@pytest.mark.integration
@pytest.mark.usefixtures("store")
def test_a_model_is_promoted_with_a_backtest_of_the_sessions_that_were_kept_aside(pml: Pml) -> None:
    told = pml("train", "--learner", "markov_1", "--test", "0.5", "--seed", "1", "--json")
    assert told.exit_code == 0, told.stderr
    found = orjson.loads(told.stdout)
    aside, played = found["test"]["sessions"], found["backtest"]
    assert 0 < aside < SESSIONS
    assert found["data"]["with_values"] == SESSIONS - aside
    assert (played["held_out"], played["sessions"], played["runs"]) == (True, aside, 2 * aside)
    assert (played["known_runs"], played["asked"], played["total"]["really"]["begun"]) == (0, 2 * aside, 0)
    assert "backtest since 20" in pml("model", "show", found["model_id"]).stdout
    shown = orjson.loads(pml("model", "show", found["model_id"], "--json").stdout)
    assert shown["backtest"]["runs"] == 2 * aside


def _raises(error: PMLError) -> Callable[..., Any]:
    def away(*_: object, **__: object) -> Any:
        raise error

    return away


@pytest.mark.integration
@pytest.mark.usefixtures("store")
def test_a_store_that_is_away_at_the_end_leaves_the_model_to_a_person(
    pml: Pml, monkeypatch: pytest.MonkeyPatch
) -> None:
    away, gone = _raises(StoreUnavailable("no store")), _raises(BrokerUnavailable("no broker"))
    monkeypatch.setattr("pml.clickhouse.training.trace_priorities.write_priorities", away)
    monkeypatch.setattr("pml.streams.learning.backtesting.run_backtest", away)
    options = ("--learner", "markov_1", "--test", "0.5", "--seed", "1")
    told = pml("train", *options, "--json")
    assert told.exit_code == 0, told.stderr
    found = orjson.loads(told.stdout)
    failed = {"code": "STORE_UNAVAILABLE", "message": "no store"}
    assert found["not_done"] == {"priorities": failed, "backtest": failed}
    assert (found["promoted"], found["backtest"]) == (False, None)
    read = pml("train", *options)
    assert f"pml model promote {found['model_id']}" in read.stderr
    assert "could not be played: no store" in read.stderr
    assert "backtest" not in read.stdout
    assert orjson.loads(pml("train", *options, "--promote", "--json").stdout)["promoted"] is True
    whole = orjson.loads(pml("train", "--learner", "popularity", "--test", "0", "--json").stdout)
    assert (whole["promoted"], {*whole["not_done"]}) == (True, {"priorities"}), "there was nothing to play"

    monkeypatch.setattr("pml.streams.learning.promotion.promote", gone)
    refused = pml("train", *options, "--promote", "--json")
    error = orjson.loads(refused.stdout)["error"]
    assert (refused.exit_code, error["code"]) == (4, "BROKER_UNAVAILABLE")
    assert error["details"] == {"model_id": found["model_id"]}
    read = pml("train", *options, "--promote")
    assert found["model_id"] in read.stdout
    assert f"`pml model promote {found['model_id']}` lets it: no broker" in read.stderr


@pytest.mark.parametrize("told", [b"PAR1 and columns", b"", b"PK\x03\x04 and nothing"])
def test_nobody_is_told_to_load_a_file_unsafely(pml: Pml, told: bytes) -> None:
    Path("traces.parquet").write_bytes(told)
    refused = pml("train", "--data", "traces.parquet")
    assert refused.exit_code == 2
    assert "traces.parquet is no training set" in refused.stderr
    assert "pml export traces traces.npz" in refused.stderr
    assert "pickle" not in refused.stderr


def test_a_file_that_a_disk_has_changed_is_no_traceback(pml: Pml) -> None:
    file = write_export(Path("traces.npz"), sessions=400)
    told = bytearray(file.read_bytes())
    place = told.index(b"offsets.npy") + len("offsets.npy") + 40
    told[place] ^= 0xFF
    file.write_bytes(told)
    refused = pml("train", "--data", "traces.npz", "--json")
    assert (refused.exit_code, "CONFIGURATION" in refused.stdout) == (2, True), refused.stderr
    assert "traces.npz is no training set: its array offsets is broken" in refused.stderr


def test_a_picture_that_cannot_be_written_is_said_before_the_training(pml: Pml, tmp_path: Path) -> None:
    write_export(tmp_path / "traces.npz", sessions=14)
    told = pml("train", "--data", "traces.npz", "--plot", "gone/curve.png")
    assert (told.exit_code, "the picture cannot be written to gone/curve.png" in told.stderr) == (2, True)
    assert not Path(".pml/models").exists()


@pytest.mark.parametrize("before", [None, b"a picture"])
def test_to_find_out_whether_a_file_can_be_written_leaves_it(before: bytes | None, tmp_path: Path) -> None:
    place = tmp_path / "curve.png"
    if before is not None:
        place.write_bytes(before)
    check_writable(place)
    assert (place.read_bytes() if place.exists() else None) == before
    link = tmp_path / "latest.png"
    link.symlink_to(place)
    check_writable(link)
    assert link.is_symlink()
    assert (place.read_bytes() if place.exists() else None) == before


@pytest.mark.integration
@pytest.mark.usefixtures("store")
def test_a_model_that_fell_serves_again_only_if_a_person_says_so(pml: Pml) -> None:
    def trained(learner: str, *options: str) -> tuple[str, bool]:
        told = pml("train", "--learner", learner, "--test", "0", "--json", *options)
        assert told.exit_code == 0, told.stderr
        found = orjson.loads(told.stdout)
        return found["model_id"], found["promoted"]

    first, second = trained("markov_1"), trained("popularity")
    assert (first[1], second[1]) == (True, True)
    assert pml("model", "rollback").exit_code == 0
    assert trained("popularity") == (second[0], False), "it was gone back from"
    shown = orjson.loads(pml("model", "list", "--json").stdout)
    assert [each["model_id"] for each in shown["items"] if each["serves"]] == [first[0]]
    assert trained("popularity", "--promote") == (second[0], True)


@pytest.mark.integration
def test_a_promoted_model_serves_until_another_does_and_can_be_gone_back_to(
    pml: Pml, kafka: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka)
    monkeypatch.setenv("PML_KAFKA__TOPIC_PREFIX", new_id("cli") + ".")
    asyncio.run(ensure_topics(Settings.load()))
    write_export(tmp_path / "traces.npz", sessions=14)
    refused = pml("model", "rollback")
    assert (refused.exit_code, "no model served before" in refused.stderr) == (3, True)
    trained = pml("train", "--data", "traces.npz", "--promote", "--json")
    one = orjson.loads(trained.stdout)
    assert one["promoted"] is True
    other = orjson.loads(pml("train", "--data", "traces.npz", "--test", "0.4", "--json").stdout)["model_id"]
    told = orjson.loads(pml("model", "promote", other, "--as", "ann", "--json").stdout)
    assert (told["model_id"], told["previous"], told["principal"]) == (other, [one["model_id"]], "ann")
    assert (told["learner"], told["hit_1"], told["baseline_hit_1"]) == ("markov_1", 1, 1)
    items = orjson.loads(pml("model", "list", "--json").stdout)["items"]
    assert {item["model_id"]: item["serves"] for item in items} == {one["model_id"]: False, other: True}
    back = orjson.loads(pml("model", "rollback", "--json").stdout)
    assert (back["model_id"], back["previous"], back["reason"]) == (one["model_id"], [], "rolled_back")
    assert back["principal"] == person()
    (tmp_path / ".pml" / "models" / f"{one['model_id']}.json").unlink()
    gone = orjson.loads(pml("model", "list", "--json").stdout)["items"][-1]
    assert (gone["model_id"], gone["serves"], gone["created_at"]) == (one["model_id"], True, None)
    assert "markov_1" in pml("model", "list").stdout
    (tmp_path / ".pml" / "models" / f"{other}.json").write_text("{")
    damaged = pml("model", "list", "--json")
    assert [row["model_id"] for row in orjson.loads(damaged.stdout)["items"]] == [one["model_id"]]
    assert f"{other}.json is not what was written: train again" in damaged.stderr

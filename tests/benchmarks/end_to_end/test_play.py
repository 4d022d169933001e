"""What a real stack plays: sessions of one fold that a server can answer, and what is learned of others."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from benchmarks.end_to_end import live
from benchmarks.end_to_end.clock import key_of
from benchmarks.end_to_end.play import Play, given, play_of, server_file
from pml.processors.learning.judging import FOLDS
from pml.processors.learning.learners import BASELINES
from pml.streams.learning.sources import Known
from pml.streams.settings import Settings
from tests.streams.learning.recorded_sets import row, written

TOOLS = ["look_up", "list_all", "send"]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Of twenty sessions; the first call of each is the same and gives another result."""
    rows = [row(number, TOOLS, intent=f"plan {number % 7}") for number in range(20)]
    for number, each in enumerate(rows):
        each["tasks"][0]["output"] = {"id": number}
        each["tasks"][1]["arguments"] = {"x": {"type": "literal", "value": number}}
    written(tmp_path, "nestful", rows, TOOLS)
    return play_of(tmp_path, "nestful", 1, 10)


def test_sessions_are_played_that_the_model_does_not_know(play: Play) -> None:
    known = {each.name[0] for each in play.learned_of}
    assert play.sessions
    assert not known & {each.name for each in play.sessions}
    assert {element.name for each in play.learned_of for element in each.elements} == {
        f"recorded:{tool}" for tool in TOOLS
    }
    for session in play.sessions:
        assert [call.tool for call in play.calls(session)] == [each.name for each in session.made] == TOOLS
        assert all(1 <= call.thought_s <= 3 for call in play.calls(session))


def test_what_is_learned_of_is_what_is_asked_about(tmp_path: Path) -> None:
    """A server gives objects, so a model learns of objects; what the set keeps together is of one group."""
    rows = [row(number, TOOLS, intent="plan", main=f"m{number % 12}") for number in range(24)]
    for number, each in enumerate(rows):
        each["tasks"][0]["arguments"] = {"x": {"type": "literal", "value": number}}
        each["tasks"][0]["output"] = "found"
    written(tmp_path, "toollinkos", rows, TOOLS)
    play = play_of(tmp_path, "toollinkos", 1, 10)
    assert [each.elements[0].result for each in play.learned_of] == [{"value": "found"}] * len(play.groups)
    mains = [int(each.name[0][1:]) % 12 for each in play.learned_of]
    pairs = set(zip(mains, play.groups.tolist(), strict=True))
    assert 1 < len(pairs) == len({*mains}) == len({*play.groups.tolist()}) < 12


def test_each_fold_is_played_by_itself(tmp_path: Path, play: Play) -> None:
    plays = [play_of(tmp_path, "nestful", 1, 20, number) for number in range(FOLDS)]
    names = [{session.name for session in each.sessions} for each in plays]
    assert names[0] == {session.name for session in play.sessions}
    assert sum(map(len, names)) == len(set.union(*names)) == 20
    for each, own in zip(plays, names, strict=True):
        assert {known.name[0] for known in each.learned_of} == set.union(*names) - own


def test_of_a_fold_are_drawn_as_many_as_are_asked_for(tmp_path: Path, play: Play) -> None:
    some = play_of(tmp_path, "nestful", 1, 2)
    assert [each.name for each in some.sessions] == [each.name for each in play.sessions][:2]


def test_a_call_has_one_result_for_all_that_are_played_at_a_time(play: Play) -> None:
    assert len(play.parts) > 1
    for part in play.parts:
        results: dict[bytes, object] = {}
        for session in part.sessions:
            for each in session.made:
                assert results.setdefault(key_of(each.name, each.arguments), given(each)) == given(each)


def test_each_session_is_in_one_part_and_the_first_in_the_first(play: Play) -> None:
    played = [session.name for part in play.parts for session in part.sessions]
    assert sorted(played) == sorted(session.name for session in play.sessions)
    assert played[0] == play.sessions[0].name
    others = [replace(part, sessions=[*part.sessions, play.parts[0].sessions[0]]) for part in play.parts[1:]]
    assert all(len(each.parts) == 2 for each in others), "who agrees with a part is in an earlier one"


def test_the_baseline_of_a_play_is_what_it_is_beside_all_who_learn(play: Play, tmp_path: Path) -> None:
    settings = Settings.load(data_dir=tmp_path / "data")
    chosen = live._trained(settings, play, Known())
    baseline = chosen.manifest["baseline"]
    alone = live._trained(settings, play, Known(), baseline)
    assert alone.manifest["serves"] == baseline
    assert set(alone.manifest["validation"]) == set(BASELINES) < set(chosen.manifest["validation"])
    assert alone.manifest["validation"][baseline] == chosen.manifest["validation"][baseline]
    assert not {each.name for each in play.sessions} & {name for name, _ in alone.held_out}


async def test_a_server_gives_what_was_recorded(play: Play, tmp_path: Path) -> None:
    quick = tmp_path / "recorded.json"
    told = orjson.loads(server_file(play))
    told["results"][key_of("look_up", {"name": "ada"}).decode()] = {"id": 7}
    quick.write_bytes(orjson.dumps(told | {"median_s": 0.0}))
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "benchmarks.servers.recorded", str(quick)]
    )
    async with Client(server) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        known = await client.call_tool("look_up", {"name": "ada"})
        unknown = await client.call_tool("look_up", {"name": "nobody"})
        told["results"][key_of("look_up", {"name": "ada"}).decode()] = {"id": 8}
        other = tmp_path / "other.json"
        other.write_bytes(orjson.dumps(told | {"median_s": 0.0}))
        other.replace(quick)
        anew = await client.call_tool("look_up", {"name": "ada"})
    assert tools.keys() == set(TOOLS)
    assert {
        name: bool(tool.annotations and tool.annotations.read_only_hint) for name, tool in tools.items()
    } == play.reads
    assert (known.structured_content, unknown.structured_content) == ({"id": 7}, {})
    assert anew.structured_content == {"id": 8}


@pytest.mark.parametrize(("second", "played"), [({"id": 2}, False), ({"id": 1}, True)])
def test_a_session_whose_same_call_gave_two_results_is_not_played(
    tmp_path: Path, second: dict[str, int], played: bool
) -> None:
    rows = [row(number, ["look_up", "look_up"], intent=f"plan {number % 7}") for number in range(20)]
    for each in rows:
        each["tasks"][0]["output"], each["tasks"][1]["output"] = {"id": 1}, second
    written(tmp_path, "nestful", rows, TOOLS)
    assert bool(play_of(tmp_path, "nestful", 1, 10).sessions) is played

"""What a real stack plays: sessions of one fold that a server can answer, and what is learned of others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from benchmarks.end_to_end.models import BASELINE, RANKER, catalog_of, trained_sides
from benchmarks.end_to_end.play import SERVER, Play, given, play_of, server_file
from benchmarks.end_to_end.stacks import traced
from benchmarks.end_to_end.times import drawn_s
from pml.processors.learning.judging import FOLDS
from pml.processors.learning.learners import BASELINES
from pml.schemas.catalog import ServerTools
from pml.streams.bridge.listing import listed
from pml.streams.bridge.server_specs import StdioServer
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


def test_a_server_knows_which_session_a_call_is_of(play: Play) -> None:
    """The same call gives another result in each."""
    assert len({session.trace_id for session in play.sessions}) == len(play.sessions) > 1
    results = orjson.loads(server_file(play))["results"]
    first = [results[each.trace_id][each.keys[0].decode()] for each in play.sessions]
    assert first == [given(each.made[0]) for each in play.sessions]
    assert len({each["id"] for each in first}) == len(first)


def test_the_same_call_takes_its_time_in_each_session(play: Play) -> None:
    first = [play.calls(session)[0] for session in play.sessions]
    assert len({call.key for call in first}) == 1
    assert len({call.tool_s for call in first}) == len(first) > 1
    session = play.sessions[0]
    assert drawn_s(session.trace_id, first[0].key) == first[0].tool_s, "as the server draws it"


def test_the_baseline_of_a_play_is_what_it_is_beside_all_who_learn(play: Play, tmp_path: Path) -> None:
    sides = trained_sides(Settings.load(data_dir=tmp_path / "data"), play)
    chosen, alone = (sides[side].manifest for side in (RANKER, BASELINE))
    baseline = chosen["baseline"]
    assert alone["serves"] == baseline
    assert set(alone["validation"]) == set(BASELINES) < set(chosen["validation"])
    assert alone["validation"][baseline] == chosen["validation"][baseline]
    assert not sides[RANKER].held_out, "others are played"
    assert chosen["data"]["trained_on"] == len(play.learned_of)


async def test_a_server_gives_what_was_recorded(play: Play, tmp_path: Path) -> None:
    quick = tmp_path / "recorded.json"
    quick.write_bytes(orjson.dumps(orjson.loads(server_file(play)) | {"median_s": 0.0}))
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "benchmarks.servers.recorded", str(quick)]
    )
    async with Client(server) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        for session in play.sessions:
            call, meta = session.made[0], cast("Any", traced(session))
            known = await client.call_tool(call.name, dict(call.arguments), meta=meta)
            assert known.structured_content == given(call)
            guessed = await client.call_tool(call.name, {"name": "nobody"}, meta=meta)
            assert guessed.structured_content == {}
        assert (await client.call_tool(call.name, dict(call.arguments))).structured_content == {}
    assert tools.keys() == set(TOOLS)
    (thought,) = (each.data for each in catalog_of(play).values())
    assert isinstance(thought, ServerTools)
    found = listed(SERVER, StdioServer(command=sys.executable), thought.concurrency, tools.values())
    assert thought == found, "models learn of the catalog that a bridge writes"
    assert {
        name: bool(tool.annotations and tool.annotations.read_only_hint) for name, tool in tools.items()
    } == play.reads


@pytest.mark.parametrize(("second", "played"), [({"id": 2}, False), ({"id": 1}, True)])
def test_a_session_whose_same_call_gave_two_results_is_not_played(
    tmp_path: Path, second: dict[str, int], played: bool
) -> None:
    rows = [row(number, ["look_up", "look_up"], intent=f"plan {number % 7}") for number in range(20)]
    for each in rows:
        each["tasks"][0]["output"], each["tasks"][1]["output"] = {"id": 1}, second
    written(tmp_path, "nestful", rows, TOOLS)
    assert bool(play_of(tmp_path, "nestful", 1, 10).sessions) is played

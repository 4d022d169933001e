"""Names of proxied tools: short, of few letters, each of one tool, whatever the tools are called."""

from __future__ import annotations

import random
import re

from hypothesis import given
from hypothesis import strategies as st

from pml.streams.mcp_server.proxy.names import NAME_MAX, hashed_name, proxied_names

PART = st.text(st.sampled_from("ab_-.é/ "), min_size=1, max_size=40)
TOOLS = st.sets(st.builds(lambda server, tool: f"{server}:{tool}", PART, PART), max_size=30)


@given(TOOLS, st.randoms(use_true_random=False))
def test_each_tool_has_a_name_of_its_own_that_clients_take(tools: set[str], shuffle: random.Random) -> None:
    names = proxied_names(tools)

    assert set(names) == tools
    assert len(set(names.values())) == len(tools)
    assert all(re.fullmatch(rf"[a-zA-Z0-9_-]{{1,{NAME_MAX}}}", name) for name in names.values())
    others = list(tools)
    shuffle.shuffle(others)
    assert proxied_names(others) == names


def test_a_name_is_server_and_tool_where_that_is_short_and_nobody_elses() -> None:
    tools = ["git:git_log", "my.files:read file"]
    assert proxied_names(tools) == {
        "git:git_log": "git__git_log",
        "my.files:read file": "my_files__read_file",
    }


def test_two_that_would_have_one_name_both_get_a_hash() -> None:
    names = proxied_names(["a:b__c", "a__b:c", "a:d"])

    assert names["a:d"] == "a__d"
    assert names["a:b__c"] == hashed_name("a:b__c", 8)
    assert names["a__b:c"] == hashed_name("a__b:c", 8)
    assert names["a:b__c"].startswith("a__b__c_")


def test_a_long_one_keeps_its_beginning() -> None:
    tool = f"files:{'read' * 20}"
    name = proxied_names([tool])[tool]

    assert len(name) == NAME_MAX
    assert name.startswith("files__readread")


def test_a_name_that_is_taken_is_not_given() -> None:
    assert proxied_names(["a:b"], {"a__b"}) == {"a:b": hashed_name("a:b", 8)}
    assert proxied_names(["a:b"], {"a__b", hashed_name("a:b", 8)}) == {"a:b": hashed_name("a:b", 16)}


def test_one_that_is_called_as_anothers_hash_is_told_apart() -> None:
    long = f"a:{'x' * 60}"
    twin = hashed_name(long, 8).replace("a__", "a:", 1)
    names = proxied_names([long, twin])

    assert len(set(names.values())) == 2

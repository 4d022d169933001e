"""Names that are derived: keys, event ids, call ids."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.schemas.identifiers import (
    call_id,
    derived_run_id,
    event_id,
    is_name,
    session_key,
    split_session_key,
    split_tool,
)

NAMES = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._:@+-]{0,20}\Z")


@pytest.mark.parametrize("text", ["a", "7", "run_01935b5e", "a.b:c@d+e-f", "A" * 128])
def test_a_name_can_be_carried_by_keys_and_paths(text: str) -> None:
    assert is_name(text)


@pytest.mark.parametrize("text", ["", "_a", "-a", ".a", "a/b", "a b", "a\n", "é", "A" * 129, "a\0"])
def test_anything_else_cannot(text: str) -> None:
    assert not is_name(text)


@given(tenant=NAMES, session_id=NAMES)
def test_a_key_is_split_into_what_it_was_made_of(tenant: str, session_id: str) -> None:
    assert split_session_key(session_key(tenant, session_id)) == (tenant, session_id)


@pytest.mark.parametrize(
    "key", [None, b"", b"local", b"/s", b"local/", b"local/a/b", b"local/\xff", b"a b/s"]
)
def test_another_key_is_not_ours(key: bytes | None) -> None:
    assert split_session_key(key) is None


@given(key=st.binary(max_size=30))
def test_a_split_key_is_the_same_key(key: bytes) -> None:
    found = split_session_key(key)
    assert found is None or session_key(*found) == key


def test_ids_are_the_same_on_every_machine_for_ever() -> None:
    assert event_id("local", "ses_1", 480, 3) == "local/ses_1:480:3"
    assert call_id("local/ses_1:480:3") == "call_8e55accd32e181df5dd68282"


@given(ids=st.sets(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=2))
def test_different_events_begin_different_calls(ids: set[tuple[int, int]]) -> None:
    assert len({call_id(event_id("t", "s", *pair)) for pair in ids}) == len(ids)


@pytest.mark.parametrize(
    ("tool", "parts"),
    [("git:log", ("git", "log")), ("a:b:c", ("a", "b:c")), ("git", ("git", "")), ("", ("", ""))],
)
def test_a_tool_is_a_server_and_a_name(tool: str, parts: tuple[str, str]) -> None:
    assert split_tool(tool) == parts


def test_the_run_of_a_command_that_names_none_is_derived_from_the_command() -> None:
    one = derived_run_id("local", "ses_1", "cmd_1")
    assert one == derived_run_id("local", "ses_1", "cmd_1")
    others = {derived_run_id("local", "ses_1", "cmd_2"), derived_run_id("b", "ses_1", "cmd_1")}
    assert len({one, *others}) == 3
    assert is_name(one)

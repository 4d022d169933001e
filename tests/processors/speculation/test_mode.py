"""Off, shadow, on: for all, by tenant, by server, by tool."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.speculation.distrust import IN_A_ROW, Divergences, distrusted, one_more, told
from pml.processors.speculation.mode import for_all, mode_of, strictest
from pml.schemas.catalog import DivergenceRecord, SpeculationMode
from pml.schemas.permissions import Permission

MODES = st.sampled_from(get_args(SpeculationMode))
SCOPES = st.sampled_from(
    [
        *("speculation", "contact", "tenant=local", "tenant=other"),
        *("server=files", "server=git", "tool=files:read", "tool=git:log"),
    ]
)
ALLOWS = {"off": 0, "shadow": 1, "on": 2}


@given(st.lists(MODES))
def test_the_strictest_allows_least(modes: list[SpeculationMode]) -> None:
    assert ALLOWS[strictest(modes)] == min([ALLOWS[mode] for mode in modes], default=2)


@given(switches=st.dictionaries(SCOPES, MODES), more=st.tuples(SCOPES, MODES))
def test_one_more_switch_never_allows_more(
    switches: dict[str, SpeculationMode], more: tuple[str, SpeculationMode]
) -> None:
    scope, mode = more
    if scope in switches:
        return
    before = mode_of(switches, "local", "files:read")
    after = mode_of({**switches, scope: mode}, "local", "files:read")
    assert ALLOWS[after] <= ALLOWS[before]
    mine = for_all(scope) or scope in {"tenant=local", "server=files", "tool=files:read"}
    if not mine:
        assert after == before
    elif ALLOWS[mode] < ALLOWS[before]:
        assert after == mode


@pytest.mark.parametrize("scope", ["tenant=local", "server=files", "tool=files:read"])
def test_a_switch_stops_what_it_names_and_nothing_else(scope: str) -> None:
    assert mode_of({scope: "off"}, "local", "files:read") == "off"
    assert mode_of({scope: "off"}, "other", "git:read") == "on"


@pytest.mark.parametrize(
    ("approved_at", "trusted"),
    [
        (None, False),
        ("2026-11-22T00:00:00Z", False),
        ("2026-11-22T00:00:02Z", True),
        ("2026-11-22T00:00:09Z", True),
    ],
)
def test_an_approval_counts_from_its_time_on(approved_at: str | None, trusted: bool) -> None:
    """The three divergences are at the seconds 1, 2 and 3: one before the approval leaves two."""
    times = tuple(f"2026-11-22T00:00:0{second}.000000Z" for second in (1, 2, 3))
    record = DivergenceRecord(tool="files:read", diverged_at=times)
    permission = Permission.model_validate({"approval": "auto", "approved_at": approved_at})
    assert distrusted(record, permission) is not trusted
    assert distrusted(record, None)
    assert not distrusted(DivergenceRecord(tool="files:read", diverged_at=times[1:]), None)


@given(st.lists(st.booleans()))
def test_only_divergences_in_a_row_are_kept(answers: list[bool]) -> None:
    times: tuple[str, ...] = ()
    for number, same in enumerate(answers):
        times = one_more(times, str(number), same)
    row = next((number for number, same in enumerate(reversed(answers)) if same), len(answers))
    expected = [str(number) for number in range(len(answers))][len(answers) - row :][-IN_A_ROW:]
    assert list(times) == expected


def test_what_is_known_of_a_tool_follows_its_answers() -> None:
    known = told(told(Divergences(), "t1", same=False), "t2", same=False)
    assert known == Divergences(("t1", "t2"))
    assert told(known, "t3", same=True) == Divergences()


def test_three_divergences_are_needed() -> None:
    times = tuple(f"2023-11-14T22:13:2{number}Z" for number in range(3))
    assert not distrusted(DivergenceRecord(tool="a:b", diverged_at=times[:2]), None)
    assert distrusted(DivergenceRecord(tool="a:b", diverged_at=times), None)
    assert distrusted(DivergenceRecord(tool="a:b", diverged_at=times), Permission(scope="minimal"))


@pytest.mark.parametrize(
    ("scope", "every"),
    [
        ("global", True),
        ("speculation", True),
        ("tenant", True),
        ("other=x", True),
        ("tenant=acme", False),
        ("server=git", False),
        ("tool=git:log", False),
    ],
)
def test_a_switch_is_for_all_unless_it_names_a_tenant_a_server_or_a_tool(scope: str, every: bool) -> None:
    assert for_all(scope) is every


def test_a_tool_approved_in_the_moment_of_its_divergence_is_trusted_no_less() -> None:
    """Only what came after the approval speaks against the tool."""
    times = tuple(f"2023-11-14T22:13:2{number}.000000Z" for number in range(3))
    record = DivergenceRecord(tool="a:b", diverged_at=times)
    at_once = Permission(scope="minimal", approved_at="2023-11-14T22:13:20Z")
    before = Permission(scope="minimal", approved_at="2023-11-14T22:13:19Z")
    assert (distrusted(record, at_once), distrusted(record, before)) == (False, True)

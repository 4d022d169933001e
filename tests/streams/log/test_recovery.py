"""Taking a partition over and catching up, against a full fold of the log as the twin."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.schemas.errors import BrokerUnavailable, LogCorrupted
from pml.streams.log.reader import counted, counted_event, event_type
from pml.streams.log.recovery import (
    Folding,
    Marker,
    Stored,
    first_offset,
    fold,
    newest_term,
    recover,
    stale,
    take,
)
from tests.streams.log.memory_log import LostAcknowledgement, MemoryLog, Sum, event, evolve, outgoing

Table = dict[bytes, tuple[Stored, Sum]]


def full_fold(log: MemoryLog) -> tuple[dict[bytes, Sum], dict[str, int]]:
    """The twin: every counted record from the first, no table, no terms."""
    states: dict[bytes, Sum] = {}
    causes: dict[str, int] = {}
    for record in log.records:
        if not counted(record) or event_type(record) == "partition.taken":
            continue
        message = counted_event(record)
        states[record.key or b""] = evolve(states.get(record.key or b""), message)
        if message.cause:
            causes[message.cause.topic] = max(causes.get(message.cause.topic, -1), message.cause.offset)
    return states, causes


async def taken_over(log: MemoryLog, table: Table, marker: Marker) -> tuple[int, Folding[Sum]]:
    term = await take(log, 0, "owner", lambda: 0)
    folding = Folding(evolve, lambda key: table[key][1] if key in table else None, 0)
    await recover(log, folding, marker, {key: pair[0] for key, pair in table.items()}, term + 1)
    return term, folding


def as_recovered(folding: Folding[Sum], table: Table) -> dict[bytes, Sum]:
    return {key: pair[1] for key, pair in table.items()} | folding.sessions


def stored(term: int, state: Sum, live: bool = True) -> Stored:
    return Stored(term, state.epoch, state.last_offset, 0, live, b"")


def begin(log: MemoryLog, session: str, cause: int | None = None) -> Sum:
    offset = len(log.records)
    message = event(session, offset, 0, offset, cause)
    log.land([outgoing(message)])
    return evolve(None, message)


def go_on(log: MemoryLog, session: str, state: Sum, cause: int | None = None) -> Sum:
    message = event(session, state.epoch, state.seq + 1, len(log.records), cause)
    log.land([outgoing(message)])
    return evolve(state, message)


async def test_an_empty_partition_is_taken_at_its_first_offset() -> None:
    log = MemoryLog()
    term, folding = await taken_over(log, {}, Marker())
    assert (term, folding.end, folding.taken, folding.sessions) == (0, 1, 0, {})


async def test_a_term_lost_to_another_owner_is_taken_again_at_the_new_end() -> None:
    log = MemoryLog()
    rivals = iter([True, True])

    def rival() -> None:
        if next(rivals, False):
            begin(log, "rival")

    log.before_append = rival
    term = await take(log, 0, "owner", lambda: 0)
    assert [counted(record) for record in log.records] == [True, False, True, False, True]
    assert term == 4


async def test_a_term_in_doubt_is_taken_again_so_that_it_is_unique() -> None:
    log = MemoryLog()
    doubts = iter([True])

    class Doubtful(MemoryLog):
        async def append(self, base: int, records: object) -> None:
            await log.append(base, records)  # type: ignore[arg-type]
            if next(doubts, False):
                raise LostAcknowledgement("landed, and nobody knows")

        async def end(self) -> int:
            return await log.end()

    assert await take(Doubtful(), 0, "owner", lambda: 0) == 1


async def test_taking_gives_up_after_so_many_rivals() -> None:
    log = MemoryLog()
    log.before_append = lambda: (begin(log, "rival"), None)[1]
    with pytest.raises(BrokerUnavailable, match="20 appends"):
        await take(log, 0, "owner", lambda: 0)


async def test_a_trusted_state_is_folded_on_from_the_marker_alone() -> None:
    log = MemoryLog()
    first = begin(log, "s", cause=4)
    marker = Marker(folded=1, term=0, causes={"pml.commands": 4})
    last = go_on(log, "s", first, cause=7)
    term, folding = await taken_over(log, {b"local/s": (stored(0, first), first)}, marker)
    assert folding.sessions == {b"local/s": last}
    assert folding.causes == {"pml.commands": 7}
    assert log.read_from == [1]
    assert term == 2


async def test_a_state_newer_than_the_marker_takes_no_event_twice() -> None:
    log = MemoryLog()
    last = go_on(log, "s", go_on(log, "s", begin(log, "s")))
    _, folding = await taken_over(log, {b"local/s": (stored(0, last), last)}, Marker(folded=1, term=0))
    assert folding.sessions == {b"local/s": last}


async def test_a_state_that_a_late_owner_wrote_over_a_newer_one_is_rebuilt() -> None:
    log = MemoryLog()
    old = begin(log, "s")
    newer = go_on(log, "s", old)
    other = begin(log, "o")
    table = {b"local/s": (stored(0, old), old), b"local/o": (stored(2, other), other)}
    _, folding = await taken_over(log, table, Marker(folded=3, term=2))
    assert folding.sessions[b"local/s"] == newer


async def test_an_ended_state_of_an_older_term_is_not_trusted_either() -> None:
    log = MemoryLog()
    old = begin(log, "s")
    newer = go_on(log, "s", old)
    table = {b"local/s": (stored(0, old, live=False), old)}
    _, folding = await taken_over(log, table, Marker(folded=2, term=1))
    assert folding.sessions == {b"local/s": newer}


async def test_a_marker_that_is_older_than_the_states_moves_the_start_back_to_their_term() -> None:
    marker = Marker(folded=9, term=1)
    states = {b"a": Stored(5, 0, 4, 0, True, b""), b"b": Stored(1, 2, 3, 0, True, b"")}
    assert newest_term(marker, states) == 5
    assert first_offset(marker, 5) == 5
    assert first_offset(Marker(folded=3, term=1), 5) == 3
    assert first_offset(Marker(folded=9, term=5), 5) == 9
    assert stale(states, 5) == {b"b": 2}


async def test_a_session_whose_state_is_missing_is_rebuilt_from_its_first_event() -> None:
    log = MemoryLog()
    begin(log, "other")
    state = go_on(log, "s", begin(log, "s"))
    _, folding = await taken_over(log, {}, Marker(folded=2, term=0))
    assert folding.sessions == {b"local/s": state}
    assert log.read_from == [2, 1]


async def test_a_session_that_returned_is_folded_as_its_new_life() -> None:
    log = MemoryLog()
    ended = begin(log, "s")
    again = go_on(log, "s", begin(log, "s"))
    table = {b"local/s": (stored(0, ended, live=False), ended)}
    _, folding = await taken_over(log, table, Marker(folded=1, term=0))
    assert folding.sessions == {b"local/s": again}


async def test_a_live_state_that_cannot_be_decoded_is_rebuilt() -> None:
    log = MemoryLog()
    state = begin(log, "s")
    term = await take(log, 0, "owner", lambda: 0)
    folding: Folding[Sum] = Folding(evolve, lambda key: None, 0)
    await recover(log, folding, Marker(folded=1, term=0), {b"local/s": stored(0, state)}, term + 1)
    assert folding.sessions == {b"local/s": state}


async def test_void_records_change_nothing() -> None:
    log = MemoryLog()
    state = begin(log, "s", cause=1)
    log.land([outgoing(event("s", 0, 1, 99, cause=50)), outgoing(event("v", 7, 0, 7))])
    _, folding = await taken_over(log, {}, Marker())
    assert (folding.sessions, folding.causes) == ({b"local/s": state}, {"pml.commands": 1})


async def test_a_newer_term_is_noticed_while_catching_up() -> None:
    log = MemoryLog()
    mine = await take(log, 0, "a", lambda: 0)
    theirs = await take(log, 0, "b", lambda: 0)
    folding: Folding[Sum] = Folding(evolve, lambda key: None, mine + 1)
    await fold(log, folding, await log.end())
    assert folding.taken == theirs > mine


async def test_a_gap_in_the_events_of_a_session_is_an_error() -> None:
    log = MemoryLog()
    begin(log, "s")
    log.land([outgoing(event("s", 0, 2, 1))])
    with pytest.raises(LogCorrupted, match="gap"):
        await taken_over(log, {}, Marker())


async def test_a_hole_in_the_offsets_is_an_error() -> None:
    log = MemoryLog()
    begin(log, "s")
    begin(log, "t")
    del log.records[0]
    folding: Folding[Sum] = Folding(evolve, lambda key: None, 0)
    with pytest.raises(LogCorrupted, match="from offset 0 to 1"):
        await fold(log, folding, 1)


async def test_a_state_without_any_event_is_an_error() -> None:
    log = MemoryLog()
    begin(log, "t")
    ghost = Sum(0, 0, 0, 0)
    with pytest.raises(LogCorrupted, match="no event in the log"):
        await taken_over(log, {b"local/ghost": (stored(0, ghost), ghost)}, Marker(folded=1, term=1))


@dataclass
class Owner:
    """An owner that may be stopped at any moment and wake up much later."""

    term: int
    end: int
    states: dict[bytes, Sum]
    causes: dict[str, int]
    writes: list[tuple[bytes, Stored, Sum] | Marker] = field(default_factory=list)

    def decide(self, log: MemoryLog, session: str, returns: bool, input_offset: int) -> None:
        """Rule 3 in memory: an append that lands elsewhere changes nothing."""
        key = f"local/{session}".encode()
        state = self.states.get(key)
        seq = 0 if state is None or returns else state.seq + 1
        epoch = self.end if seq == 0 or state is None else state.epoch
        message = event(session, epoch, seq, self.end, input_offset)
        if log.land([outgoing(message)]) == self.end:
            self.states[key] = evolve(state, message)
            self.causes["pml.commands"] = input_offset
            self.end += 1

    def plan_writes(self, everything: bool) -> None:
        """What write-behind will send: states first, then the marker as it was before them."""
        changed = self.states if everything else dict(list(self.states.items())[:2])
        for key, state in changed.items():
            self.writes.append((key, stored(self.term, state, live=state.total % 3 != 0), state))
        if everything:
            self.writes.append(Marker(self.end, self.term, dict(self.causes)))


@dataclass
class World:
    log: MemoryLog = field(default_factory=MemoryLog)
    table: Table = field(default_factory=dict)
    marker: Marker = field(default_factory=Marker)
    owners: list[Owner] = field(default_factory=list)
    inputs: int = 0

    def take_over(self) -> None:
        term, folding = asyncio.run(taken_over(self.log, self.table, self.marker))
        states, causes = full_fold(self.log)
        assert as_recovered(folding, self.table) == states
        assert folding.causes == causes
        owner = Owner(term, folding.end, states, causes)
        owner.plan_writes(everything=True)
        self.owners.append(owner)

    def deliver(self, owner: Owner, count: int) -> None:
        """So many of the owner's planned writes arrive, perhaps long after it was overtaken."""
        for write in owner.writes[:count]:
            if isinstance(write, Marker):
                self.marker = write
            else:
                self.table[write[0]] = (write[1], write[2])
        del owner.writes[:count]


owners = st.integers(0, 2)
steps = st.one_of(
    st.tuples(st.just("take"), st.just(0), st.just(0)),
    st.tuples(st.just("decide"), owners, st.integers(0, 9)),
    st.tuples(st.just("plan"), owners, st.integers(0, 1)),
    st.tuples(st.just("deliver"), owners, st.integers(1, 4)),
    st.tuples(st.just("deliver"), st.just(0), st.just(99)),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(steps, min_size=25, max_size=60))
def test_every_takeover_finds_the_states_of_a_full_fold(program: list[tuple[str, int, int]]) -> None:
    world = World()
    world.take_over()
    for name, which, value in program:
        owner = world.owners[-1 - which % len(world.owners)]
        if name == "take":
            world.take_over()
        elif name == "decide":
            world.inputs += 1
            owner.decide(world.log, f"s{value % 2}", returns=value == 9, input_offset=world.inputs)
        elif name == "plan":
            owner.plan_writes(everything=bool(value))
        else:
            world.deliver(owner, value)
    world.take_over()

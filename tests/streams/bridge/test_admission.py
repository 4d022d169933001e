"""Slots: limits hold, and a real call never waits behind a speculative one."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pml.streams.bridge.admission import Admission, Ticket


def real(server: str = "a", session: str = "s") -> Ticket:
    return Ticket(server, session, speculative=False)


def early(server: str = "a", session: str = "s") -> Ticket:
    return Ticket(server, session, speculative=True)


def queue(admission: Admission, *tickets: Ticket) -> None:
    for ticket in tickets:
        admission.wait(ticket)


def test_calls_start_in_the_order_they_came_up_to_the_server_limit() -> None:
    admission = Admission(10, 10, {"a": 2})
    first, second, third = real(), real(), real()
    queue(admission, first, second, third)
    assert admission.admit() == [first, second]
    admission.leave(first)
    assert admission.admit() == [third]


def test_one_slot_of_a_server_stays_free_of_speculation() -> None:
    admission = Admission(10, 10, {"a": 3})
    queue(admission, early(), early(), early())
    assert len(admission.admit()) == 2
    queue(admission, real())
    assert len(admission.admit()) == 1
    assert admission.waiting == 1


def test_in_the_only_slot_the_speculative_call_gives_way() -> None:
    admission = Admission(10, 10, {"a": 1})
    guess, call = early(), real()
    queue(admission, guess)
    assert admission.admit() == [guess]
    queue(admission, call)
    assert admission.admit() == []
    assert admission.give_way() == [guess]
    assert admission.give_way() == [], "each is named once"
    admission.leave(guess)
    assert admission.admit() == [call]


def test_the_youngest_gives_way_first() -> None:
    admission = Admission(10, 10, {"a": 3})
    old, young = early(), early()
    queue(admission, old, young, real())
    admission.admit()
    queue(admission, real())
    assert admission.admit() == []
    assert admission.give_way() == [young]


def test_a_joined_call_does_not_give_way() -> None:
    admission = Admission(10, 10, {"a": 1})
    joined = early()
    queue(admission, joined)
    admission.admit()
    admission.promote(joined)
    queue(admission, real())
    assert admission.give_way() == []


def test_a_waiting_call_that_is_joined_goes_before_other_guesses() -> None:
    admission = Admission(10, 10, {"a": 1})
    other, joined = early(), early()
    blocker = real()
    queue(admission, blocker)
    admission.admit()
    queue(admission, other, joined)
    admission.promote(joined)
    admission.leave(blocker)
    assert admission.admit() == [joined]


def test_a_call_that_is_refused_waits_nowhere_and_may_be_joined() -> None:
    admission = Admission(4, 2, {"a": 2})
    refused, unknown = early(), early("removed")
    for ticket in (refused, unknown):
        admission.promote(ticket)
    assert [ticket.speculative for ticket in (refused, unknown)] == [False, False]
    assert (admission.waiting, admission.admit()) == (0, [])


def test_nobody_gives_way_where_it_would_not_help() -> None:
    admission = Admission(3, 10, {"a": 1, "b": 2})
    busy, guess = real("a"), early("b")
    queue(admission, busy, guess)
    admission.admit()
    queue(admission, real("a"))
    assert admission.give_way() == [], "server a is full of real calls"


def test_a_session_at_its_limit_does_not_hold_up_the_others() -> None:
    admission = Admission(10, 1, {"a": 5})
    one, two, other = real(session="x"), real(session="x"), real(session="y")
    queue(admission, one, two, other)
    assert admission.admit() == [one, other]


def test_a_guess_gives_way_to_a_real_call_of_its_session() -> None:
    admission = Admission(10, 1, {"a": 5})
    guess = early()
    queue(admission, guess)
    admission.admit()
    queue(admission, real())
    assert admission.admit() == []
    assert admission.give_way() == [guess]


def test_no_server_starves_the_others_of_the_last_slot() -> None:
    admission = Admission(1, 100, {"a": 9, "b": 9, "c": 9})
    queue(admission, *(real(server) for server in "abc" for _ in range(10)))
    served: Counter[str] = Counter()
    for _ in range(15):
        (ticket,) = admission.admit()
        served[ticket.server] += 1
        admission.leave(ticket)
    assert min(served[server] for server in "abc") >= 3


STEPS = st.lists(
    st.tuples(st.sampled_from(["wait", "early", "leave", "promote"]), st.integers(0, 5), st.integers(0, 99)),
    max_size=80,
)


@given(STEPS, st.integers(1, 5), st.integers(1, 4), st.integers(1, 3))
def test_limits_hold_and_giving_way_lets_every_real_call_start_that_fits(
    steps: list[tuple[str, int, int]], total: int, session_limit: int, limit: int
) -> None:
    admission = Admission(total, session_limit, {"a": limit, "b": 2})
    running: list[Ticket] = []
    waiting: list[Ticket] = []
    for step, place, pick in steps:
        if step in ("wait", "early"):
            ticket = Ticket("ab"[place % 2], "xyz"[place % 3], step == "early")
            waiting.append(ticket)
            admission.wait(ticket)
        elif step == "leave" and running + waiting:
            ticket = (running + waiting)[pick % len(running + waiting)]
            (running if ticket in running else waiting).remove(ticket)
            admission.leave(ticket)
        elif running + waiting:
            admission.promote((running + waiting)[pick % len(running + waiting)])
        start(admission, running, waiting)
        for victim in admission.give_way():
            assert victim.speculative
            running.remove(victim)
            admission.leave(victim)
        start(admission, running, waiting)
        check_limits(running, total, session_limit, {"a": limit, "b": 2})
        check_nobody_waits_for_a_guess(running, waiting, total, session_limit, {"a": limit, "b": 2})
        assert (admission.running, admission.waiting) == (len(running), len(waiting))


def start(admission: Admission, running: list[Ticket], waiting: list[Ticket]) -> None:
    for ticket in admission.admit():
        waiting.remove(ticket)
        running.append(ticket)


def check_limits(running: list[Ticket], total: int, session_limit: int, limits: dict[str, int]) -> None:
    assert len(running) <= total
    assert all(count <= session_limit for count in Counter(t.session for t in running).values())
    assert all(count <= limits[server] for server, count in Counter(t.server for t in running).items())
    guesses = Counter(t.server for t in running if t.speculative)
    assert all(count <= max(1, limits[server] - 1) for server, count in guesses.items())
    assert guesses.total() <= max(1, total - 1)


def check_nobody_waits_for_a_guess(
    running: list[Ticket], waiting: list[Ticket], total: int, session_limit: int, limits: dict[str, int]
) -> None:
    """A real call that waits would also wait if nothing were speculated."""
    held = [ticket for ticket in running if not ticket.speculative]
    sessions, servers = Counter(t.session for t in held), Counter(t.server for t in held)
    for ticket in waiting:
        if not ticket.speculative:
            assert (
                len(held) >= total
                or sessions[ticket.session] >= session_limit
                or servers[ticket.server] >= limits[ticket.server]
            )

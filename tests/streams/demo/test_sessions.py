from __future__ import annotations

from collections import Counter

from pml.deploy.examples import product
from pml.streams.demo.sessions import STEPS, draw_sessions


def test_a_seed_draws_the_same_sessions_and_another_draws_others() -> None:
    assert draw_sessions(20, 1) == draw_sessions(20, 1)
    assert draw_sessions(20, 1) != draw_sessions(20, 2)
    assert draw_sessions(30, 1)[:20] == draw_sessions(20, 1)


def test_every_session_is_three_workflows_about_what_the_user_wants() -> None:
    sessions = draw_sessions(60, 1)
    assert {len(session.steps) for session in sessions} == {STEPS}
    assert all(step.intent == session.request for session in sessions for step in session.steps)
    assert min(Counter(session.kind for session in sessions).values()) > 10


def test_all_that_is_read_is_there() -> None:
    files = set(product.files())
    folders = {path.rpartition("/")[0] for path in files}
    for session in draw_sessions(200, 1):
        for task in (task for step in session.steps for task in step.tasks):
            path = task.arguments["path"].value  # type: ignore[union-attr]
            assert path in (files if task.tool == "files:read_file" else folders), path


def test_all_begin_alike_and_what_comes_next_depends_on_what_is_wanted() -> None:
    sessions = draw_sessions(60, 1)
    assert {session.steps[0].tasks[0].tool for session in sessions} == {"files:list_dir"}
    second = {(session.kind, *(task.tool for task in session.steps[1].tasks)) for session in sessions}
    assert len(second) == 3

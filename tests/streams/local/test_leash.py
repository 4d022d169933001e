"""Whoever may not choose how the kernel treats a program runs it all the same."""

from __future__ import annotations

import os
import sys

import pytest

from pml.streams.local import leash

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there are leashes on Linux alone")


@pytest.mark.parametrize("policy", [leash.USUAL, leash.IDLE])
def test_a_sandbox_that_forbids_policies_forbids_no_program(
    monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    asked, run = [], []

    def forbidden(*wish: object) -> None:
        asked.append(wish)
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", forbidden)
    monkeypatch.setattr(os, "nice", lambda behind: behind)
    monkeypatch.setattr(os, "execv", lambda *program: run.append(program))
    monkeypatch.setattr(leash, "PR_SET_PDEATHSIG", 0)  # no such wish: this process stays off the leash
    monkeypatch.setattr(sys, "argv", ["leash.py", str(os.getppid()), "15", policy, "/bin/true", "x"])
    leash.main()
    assert run == [("/bin/true", ["/bin/true", "x"])]
    assert len(asked) == (policy == leash.IDLE)

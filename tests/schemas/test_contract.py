"""What is public changes by addition only: the exported schemas against those that were committed last.

`pytest tests/schemas/test_contract.py --rewrite` keeps the lines of now; the difference is read in review.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pml.schemas.commands import COMMANDS
from pml.schemas.export import json_schemas
from tests.schemas.contract_lines import Field, breaks, contract, read, written

LINES = Path(__file__).parent / "contract.txt"
INPUTS = frozenset({"workflow", "permissions", *COMMANDS})


def test_what_was_public_still_is(request: pytest.FixtureRequest) -> None:
    now = contract(json_schemas())
    if request.config.getoption("--rewrite"):
        LINES.write_text(written(now))
    before = read(LINES.read_text())
    assert breaks(before, now, INPUTS) == []
    added = sorted(set(now) - set(before))
    assert not added, f"new in public; keep them with --rewrite: {added}"


def test_the_lines_say_all_and_are_read_as_they_were_written() -> None:
    now = contract(json_schemas())
    assert read(written(now)) == now
    assert {name.split(" ")[0] for name in now} == set(json_schemas())
    assert now["run.start .data.intent"] == Field(False, frozenset({"string", "null"}))
    assert now["task.completed .data.task_id"].required
    assert now["run.started .type"].kinds == {"'run.started'"}


ALWAYS, MAYBE = Field(True, frozenset({"string"})), Field(False, frozenset({"string"}))
WIDER = Field(True, frozenset({"string", "null"}))
BEFORE = {"run.start .a": ALWAYS, "run.start .b": MAYBE, "run.started .a": ALWAYS, "run.started .b": WIDER}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, []),
        ({"run.started .c": ALWAYS, "run.other .a": ALWAYS}, []),
        ({"run.start .c": MAYBE, "run.start .a": MAYBE}, []),
        ({"run.start .a": WIDER}, []),
        ({"run.start .b.c": ALWAYS}, ["run.start .b.c must be given now"]),
        ({"run.start .c": ALWAYS}, ["run.start .c must be given now"]),
        ({"run.start .b": ALWAYS}, ["run.start .b must be given now"]),
        ({"run.started .a": MAYBE}, ["run.started .a may be absent now"]),
        ({"run.started .a": None}, ["run.started .a is gone"]),
        ({"run.started .b": ALWAYS}, ["run.started .b is no null any more"]),
    ],
)
def test_additions_are_free_and_everything_else_is_told(
    change: dict[str, Field | None], said: list[str]
) -> None:
    after = {name: field for name, field in {**BEFORE, **change}.items() if field is not None}
    assert breaks(BEFORE, after, frozenset({"run.start"})) == said

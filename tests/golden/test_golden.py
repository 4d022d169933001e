"""Every scenario of this folder still gives what it gave, byte for byte.

`pytest tests/golden --rewrite` writes the answers anew: read the difference before you keep it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.scenario import Scenario, parse

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.txt"))


def test_there_are_scenarios() -> None:
    assert len(FILES) >= 30


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario(path: Path, request: pytest.FixtureRequest) -> None:
    comment, blocks = parse(path.read_text())
    assert comment.startswith("# "), "say on top what the scenario proves"
    scenario = Scenario()
    answers = [scenario.carry_out(block) for block in blocks]
    if request.config.getoption("--rewrite"):
        written = [block.written(answer) for block, answer in zip(blocks, answers, strict=True)]
        path.write_text("\n\n".join([comment, *written]) + "\n")
        return
    for block, answer in zip(blocks, answers, strict=True):
        assert answer == block.expected, f"{path.name}: {block.command}"

"""What thresholds learn from windows of outcomes, line by line.

A line is `<successes>/50` and what followed from it. `pytest tests/golden --rewrite` writes them anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pml.processors.speculation.adaptation import WINDOW, Change, Learning, learn

FOLDER = Path(__file__).parent / "learning"
FILES = sorted(FOLDER.glob("*.txt"))


def told(window: str, learning: Learning, change: Change) -> str:
    figures = f"threshold {change.previous:.4f} -> {change.value:.4f}  average {change.ema:.4f}"
    return f"{window:>5}  {figures}  {learning.state:<9}  {change.reason}"


def played(lines: list[str]) -> list[str]:
    learning, answers = Learning(), []
    for line in lines:
        window = line.split()[0]
        successes, size = map(int, window.split("/"))
        assert size == WINDOW
        for number in range(size):
            learning, change = learn(learning, number < successes)
        assert change is not None
        answers.append(told(window, learning, change))
    return answers


def test_there_are_histories() -> None:
    assert len(FILES) >= 4


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_history(path: Path, request: pytest.FixtureRequest) -> None:
    comment, _, body = path.read_text().partition("\n\n")
    assert comment.startswith("# "), "say on top what the history proves"
    lines = body.splitlines()
    answers = played(lines)
    if request.config.getoption("--rewrite"):
        path.write_text(f"{comment}\n\n" + "\n".join(answers) + "\n")
        return
    assert answers == lines

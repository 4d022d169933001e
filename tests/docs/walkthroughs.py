"""A walk-through page as one bash script: its commands in order, and what each is said to print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.docs import pages

MARK = "@@ step "
_HEREDOC = re.compile(r"<<'?(\w+)'?")


@dataclass(slots=True)
class Step:
    """One command, which may have a document below it, and the lines that the page shows under it."""

    command: str
    shown: list[str] = field(default_factory=list)


def steps(name: str) -> list[Step]:
    """All commands of the page's console blocks."""
    return [step for block in pages.blocks(name, "console") for step in _of_block(block)]


def _of_block(block: str) -> Iterator[Step]:
    lines = iter(block.splitlines())
    step: Step | None = None
    for line in lines:
        if line.startswith("$ "):
            if step:
                yield step
            step = Step("\n".join([line[2:], *_document(line, lines)]))
        elif line.strip():
            assert step, f"a block begins without a command: {line}"
            step.shown.append(line)
    if step:
        yield step


def _document(line: str, lines: Iterator[str]) -> Iterator[str]:
    found = _HEREDOC.search(line)
    if found:
        for following in lines:
            yield following
            if following == found.group(1):
                return
        raise AssertionError(f"no end of the document: {line}")


def script(name: str) -> str:
    """The page for bash: it stops at the first command that fails, and marks where each begins."""
    commands = [f"echo; echo '{MARK}{number}'\n{step.command}" for number, step in enumerate(steps(name))]
    return "\n".join(["set -euo pipefail", "exec 2>&1", *commands, ""])


def outputs(text: str) -> list[str]:
    """What each command printed, of all that the script did."""
    return re.split(rf"^{MARK}\d+$", text, flags=re.MULTILINE)[1:]


def missing(step: Step, output: str) -> str | None:
    """The first line of the page that the command did not print, in their order; `…` stands for anything."""
    lines = iter(" ".join(line.split()) for line in output.splitlines())
    for shown in step.shown:
        pattern = ".*".join(re.escape(part) for part in " ".join(shown.split()).split("…"))
        if not any(re.fullmatch(pattern, line) for line in lines):
            return shown
    return None

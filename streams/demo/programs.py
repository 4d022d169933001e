"""The demo's programs: run once, learned by that, and run again by nothing but their intent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from importlib.resources import as_file, files

import yaml
from pydantic import TypeAdapter

from pml.schemas.base import Json, Model
from pml.schemas.commands import Code
from pml.schemas.errors import WaitedTooLong
from pml.schemas.identifiers import DEFAULT_TENANT
from pml.streams.capability_listing import ListedCapability, read_capabilities
from pml.streams.demo.report import IntentReport, compare
from pml.streams.demo.runs import Asked, Measured, Runner
from pml.streams.settings import Settings

EXAMPLES = "pml.deploy.examples"
# The projection follows the log within a second; a machine may be busy.
LEARN_TIMEOUT_S = 60
LEARN_POLL_S = 0.1


class ProgramExample(Model):
    """A program of the demo, what it is for, and two contexts to run it with."""

    file: str
    intent: str
    context: dict[str, Json]
    again: dict[str, Json]
    source: str = ""


def load_programs() -> list[ProgramExample]:
    """The demo's programs with their texts."""
    with as_file(files(EXAMPLES) / "programs") as folder:
        listed = yaml.safe_load((folder / "programs.yaml").read_text("utf-8"))
        found = TypeAdapter(list[ProgramExample]).validate_python(listed)
        return [item.model_copy(update={"source": (folder / item.file).read_text("utf-8")}) for item in found]


async def learn_all(
    runner: Runner, settings: Settings, programs: Sequence[ProgramExample], say: Callable[[str], None]
) -> list[tuple[IntentReport, tuple[str, ...]]]:
    """Each program once, then by its intent with other values; with the ids of the runs compared.

    Raises:
        WaitedTooLong: a capability was not learned in a minute.
    """
    return [await _learn(runner, settings, program, say) for program in programs]


async def _learn(
    runner: Runner, settings: Settings, program: ProgramExample, say: Callable[[str], None]
) -> tuple[IntentReport, tuple[str, ...]]:
    code = Code(source=program.source)
    say(f"{program.file}: a program, for the first time")
    await runner.measure(Asked(code, "on", intent=program.intent, context=program.context))
    learned = await _learned(settings, program.intent)
    say(f"{program.file}: again, with other values, without speculation")
    plain = await runner.measure(Asked(code, "off", context=program.again))
    say(f"{program.file}: the same by its intent alone, with speculation")
    meant = await runner.measure(Asked(None, "on", intent=program.intent, context=program.again))
    return _report(program, learned, plain, meant), (plain.summary.run_id, meant.summary.run_id)


def _report(
    program: ProgramExample, learned: ListedCapability, plain: Measured, meant: Measured
) -> IntentReport:
    name, tasks = learned.name, len(learned.record.tasks)
    return IntentReport(
        intent=program.intent,
        file=program.file,
        capability=name,
        capability_id=learned.record.capability_id,
        meant=meant.capability_id,
        run=compare(name, tasks, plain, meant),
    )


async def _learned(settings: Settings, intent: str) -> ListedCapability:
    """
    Raises:
        WaitedTooLong: nothing was learned under this intent in a minute.
    """
    try:
        async with asyncio.timeout(LEARN_TIMEOUT_S):
            while True:
                for item in await read_capabilities(settings, DEFAULT_TENANT):
                    if item.record.intent == intent and item.record.status == "learned":
                        return item
                await asyncio.sleep(LEARN_POLL_S)
    except TimeoutError:
        raise WaitedTooLong(f"nothing was learned from {intent!r}; `pml capability list` shows why") from None

"""The tools of this door: their names, schemas, hints, and the right that each needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from mcp_types import Tool, ToolAnnotations

from pml.schemas.errors import PMLError
from pml.streams.gateway.tokens import Scope
from pml.streams.mcp_server import decisions, discover, execute, lookups, run_answer, task_result
from pml.streams.mcp_server.shapes import Answer, Asked, schema_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """One tool.

    Attributes:
        hints: read-only, destructive, idempotent, open world, as CONTRACT.md has them.
        failure: the error that an answer is told as, where what was asked for failed.
    """

    name: str
    title: str
    description: str
    hints: tuple[bool, bool, bool, bool]
    asked: type[Asked]
    run: Callable[..., Awaitable[Answer]]
    answer: type[Answer] = run_answer.RunAnswer
    render: Callable[[Any], str] = run_answer.render
    failure: Callable[[Any], PMLError | None] = lambda answer: None

    @property
    def scope(self) -> Scope:
        """The right that it needs."""
        return "runs:read" if self.hints[0] else "runs:write"

    def listed(self) -> Tool:
        """The tool as clients see it."""
        read_only, destructive, idempotent, open_world = self.hints
        return Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=schema_of(self.asked),
            output_schema=schema_of(self.answer, "serialization"),
            annotations=ToolAnnotations(
                title=self.title,
                read_only_hint=read_only,
                destructive_hint=destructive,
                idempotent_hint=idempotent,
                open_world_hint=open_world,
            ),
        )


READS, STARTS = (True, False, True, False), (False, True, False, True)
GOES_ON, STOPS = (False, True, True, True), (False, True, True, False)
_ALL = (
    ToolSpec(
        name="pml_discover",
        title="Find what fits an intent",
        description="Find the tools and learned capabilities that fit an intent, the best first, with what "
        "they take: what a program or a DAG for pml_execute is written from.",
        hints=READS,
        asked=discover.DiscoverAsked,
        run=discover.discover,
        answer=discover.FoundAnswer,
        render=discover.render,
    ),
    ToolSpec(
        name="pml_execute",
        title="Run code, a DAG or an intent",
        description="Run a program or a DAG of calls of tools; independent ones run at the same time. An "
        "intent with a context runs the learned capability that it means; an intent alone runs nothing and "
        "is answered with suggestions. Waits for the end up to wait_s, then answers `running`. The tools "
        "are those that pml_discover finds.",
        hints=STARTS,
        asked=execute.ExecuteAsked,
        run=execute.execute,
        failure=run_answer.failure_of,
    ),
    ToolSpec(
        name="pml_get_run",
        title="Look at a run",
        description="How far a run is or how it ended, what it waits for, and its tasks with previews.",
        hints=READS,
        asked=lookups.GetRunAsked,
        run=lookups.get_run,
    ),
    ToolSpec(
        name="pml_list_runs",
        title="List runs",
        description="The newest runs first, without their tasks.",
        hints=READS,
        asked=lookups.ListRunsAsked,
        run=lookups.get_runs,
        answer=lookups.RunsAnswer,
        render=lookups.render,
    ),
    ToolSpec(
        name="pml_get_task_result",
        title="Read a task's result",
        description="The whole result of a task of a run, page by page. Results are kept for a while only.",
        hints=READS,
        asked=task_result.TaskResultAsked,
        run=task_result.get_task_result,
        answer=task_result.PageAnswer,
        render=task_result.render,
    ),
    ToolSpec(
        name="pml_continue",
        title="Continue a run",
        description="Let a run that waits at a checkpoint go on. It approves nothing: that is a person's.",
        hints=GOES_ON,
        asked=decisions.ContinueAsked,
        run=decisions.continue_run,
        failure=run_answer.failure_of,
    ),
    ToolSpec(
        name="pml_replan",
        title="Replan a run",
        description="Put other tasks in place of what has not run, in a run that waits at a checkpoint.",
        hints=STARTS,
        asked=decisions.ReplanAsked,
        run=decisions.replan,
        failure=run_answer.failure_of,
    ),
    ToolSpec(
        name="pml_abort",
        title="Abort a run",
        description="Stop a run: nothing new begins; a call that may not be interrupted is awaited.",
        hints=STOPS,
        asked=decisions.AbortAsked,
        run=decisions.abort,
    ),
)
TOOLS: dict[str, ToolSpec] = {tool.name: tool for tool in _ALL}

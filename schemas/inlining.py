"""What `pml:inline` is asked and answers: a workflow whose capabilities are tasks (DESIGN §5)."""

from __future__ import annotations

from pml.schemas.base import Record
from pml.schemas.workflow import Workflow

INLINE_TOOL = "pml:inline"


class InlineRequest(Record):
    """Arguments of `pml:inline`: the workflow as its producer wrote it."""

    workflow: Workflow


class InlineAnswer(Record):
    """The same workflow with tasks of tools only."""

    workflow: Workflow

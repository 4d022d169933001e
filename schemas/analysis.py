"""What `pml:analyse` is asked and answers: a program as a structure, before it runs (spec story 10.5)."""

from __future__ import annotations

from typing import Literal

from pml.schemas.base import Record
from pml.schemas.stepping import SandboxProgram
from pml.schemas.structure import Language, Structure
from pml.schemas.workflow import Workflow

ANALYSE_TOOL = "pml:analyse"

Mode = Literal["dag", "sandbox"]


class AnalyseRequest(Record):
    """Arguments of `pml:analyse`; without a language it is told by how the program is written."""

    source: str
    language: Language | None = None


class AnalyseAnswer(Record):
    """What a program may do. `workflow` makes its calls; where `reasons` say why none can, `program` runs."""

    language: Language
    structure: Structure
    capability_id: str
    mode: Mode
    reasons: tuple[str, ...] = ()
    workflow: Workflow | None = None
    program: SandboxProgram | None = None

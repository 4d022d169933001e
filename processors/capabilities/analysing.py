"""From source text to structure: the one way in (spec stories 10.1 to 10.3)."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from pml.processors.capabilities.analysis import analyse
from pml.processors.capabilities.conversion import obstacles, repeats, workflow_of
from pml.processors.capabilities.identity import capability_id, program_capability_id
from pml.processors.capabilities.program import Language, Program, source_error
from pml.processors.capabilities.provides import ToolSchemas, with_provides
from pml.processors.capabilities.python_program import read_python
from pml.processors.capabilities.taken import taken_by
from pml.processors.capabilities.typescript_program import read_typescript
from pml.schemas.analysis import AnalyseAnswer, AnalyseRequest, Mode
from pml.schemas.stepping import SandboxProgram
from pml.schemas.structure import Structure

SOURCE_BYTES_MAX = 256 * 1024
"""What a capability's code may have (DESIGN §2.7)."""
NO_SCHEMAS: Mapping[str, ToolSchemas] = {}


def structure_of(code: str, language: Language, schemas: Mapping[str, ToolSchemas] = NO_SCHEMAS) -> Structure:
    """All that a source text may do.

    Args:
        schemas: of the tools that are known, by `server:name`; with them it is said who provides what.

    Raises:
        SourceError: it is not of that language.
    """
    return with_provides(analyse(read(code, language)), schemas)


def analysed(request: AnalyseRequest, schemas: Mapping[str, ToolSchemas] = NO_SCHEMAS) -> AnalyseAnswer:
    """What a program may do, and the workflow that does it where there is one.

    Args:
        schemas: as for `structure_of`.

    Raises:
        SourceError: it is not of its language, or of none that is known.
    """
    language = request.language or language_of(request.source)
    structure = structure_of(request.source, language, schemas)
    reasons = obstacles(structure)
    if reasons:
        return _in_sandbox(request.source, structure, reasons)
    unfolds = repeats(structure)
    program = SandboxProgram(
        language=language, source=request.source, tools=structure.tools, structure=structure
    )
    return AnalyseAnswer(
        language=language,
        structure=structure,
        capability_id=capability_id(structure),
        mode="dag",
        workflow=None if unfolds else workflow_of(structure),
        program=program if unfolds else None,
    )


def _in_sandbox(source: str, structure: Structure, reasons: tuple[str, ...]) -> AnalyseAnswer:
    language = structure.language
    taken = taken_by(source, language, structure.parameters)
    return AnalyseAnswer(
        language=language,
        structure=structure.model_copy(update={"parameters": taken}),
        capability_id=program_capability_id(source, language),
        mode="sandbox",
        reasons=reasons,
        program=SandboxProgram(language=language, source=source, reasons=reasons, tools=structure.tools),
    )


def language_of(code: str) -> Language:
    """The language of a source text: Python where it is that, but for calls that are given an object.

    `await mcp.files.read({ path: p })` is written alike in both; in Python a tool's arguments have names.
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "typescript"
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return "typescript" if any(map(_is_given_an_object, calls)) else "python"


def _is_given_an_object(call: ast.Call) -> bool:
    called: ast.expr = call.func
    while isinstance(called, (ast.Attribute, ast.Subscript)):
        called = called.value
    of_tools = isinstance(called, ast.Name) and called.id in {"mcp", "capabilities"}
    return of_tools and any(isinstance(given, (ast.Dict, ast.Set)) for given in call.args)


def read(code: str, language: Language) -> Program:
    """The program that a source text is.

    Raises:
        SourceError: it is not of that language, or too long.
    """
    if len(code.encode("utf-8", "replace")) > SOURCE_BYTES_MAX:
        raise source_error(f"it has more than {SOURCE_BYTES_MAX} bytes", 1, 1)
    return read_python(code) if language == "python" else read_typescript(code)


def mode_of(structure: Structure) -> tuple[Mode, str | None]:
    """How a program runs, and why where that is in the sandbox (spec story 10.5, AC 7)."""
    reasons = obstacles(structure)
    return ("sandbox", reasons[0]) if reasons else ("dag", None)

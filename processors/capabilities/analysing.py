"""From source text to structure: the one way in (spec stories 10.1 to 10.3)."""

from __future__ import annotations

from collections.abc import Mapping

from pml.processors.capabilities.analysis import analyse
from pml.processors.capabilities.program import Language, Program
from pml.processors.capabilities.provides import ToolSchemas, with_provides
from pml.processors.capabilities.python_program import read_python
from pml.processors.capabilities.typescript_program import read_typescript
from pml.schemas.structure import Structure

NO_SCHEMAS: Mapping[str, ToolSchemas] = {}


def structure_of(code: str, language: Language, schemas: Mapping[str, ToolSchemas] = NO_SCHEMAS) -> Structure:
    """All that a source text may do.

    Args:
        schemas: of the tools that are known, by `server:name`; with them it is said who provides what.

    Raises:
        SourceError: it is not of that language.
    """
    return with_provides(analyse(read(code, language)), schemas)


def read(code: str, language: Language) -> Program:
    """The program that a source text is.

    Raises:
        SourceError: it is not of that language.
    """
    return read_python(code) if language == "python" else read_typescript(code)

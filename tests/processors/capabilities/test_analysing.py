from typing import Literal

import pytest

from pml.processors.capabilities.analysing import mode_of, structure_of
from pml.schemas.errors import SourceError


def test_a_program_of_calls_runs_as_a_dag() -> None:
    assert mode_of(structure_of("await mcp.a.b()", "python")) == ("dag", None)


def test_a_program_that_no_dag_expresses_says_where_and_why() -> None:
    structure = structure_of("x = 1\nwhile x:\n    await mcp.a.b()\n", "python")

    assert mode_of(structure) == ("sandbox", "line 2: `while`")
    assert structure.tools == ("a:b",)


def test_a_program_without_a_call_runs_in_the_sandbox() -> None:
    assert mode_of(structure_of("return 1 + 1", "typescript")) == ("sandbox", "it calls no tool")


@pytest.mark.parametrize(
    ("language", "code", "line", "column"),
    [
        ("python", "x = 1\ny = (2\n", 2, 5),
        ("python", "x = 1\ny = 2 3\n", 2, 7),
        ("typescript", "const x = 1;\nconst y = (2;\n", 2, 13),
        ("typescript", "if (x {\n}\n", 1, 6),
    ],
)
def test_broken_code_says_where(
    language: Literal["python", "typescript"], code: str, line: int, column: int
) -> None:
    with pytest.raises(SourceError) as caught:
        structure_of(code, language)

    assert (caught.value.details["line"], caught.value.details["column"]) == (line, column)


@pytest.mark.parametrize("language", ["python", "typescript"])
def test_code_that_is_nested_without_end_is_refused(language: Literal["python", "typescript"]) -> None:
    with pytest.raises(SourceError, match="nested"):
        structure_of(f"return {'[' * 5_000}1{']' * 5_000}", language)


@pytest.mark.parametrize("language", ["python", "typescript"])
def test_code_that_is_too_long_is_refused(language: Literal["python", "typescript"]) -> None:
    with pytest.raises(SourceError, match="262144 bytes"):
        structure_of("x = 1\n" * 50_000, language)

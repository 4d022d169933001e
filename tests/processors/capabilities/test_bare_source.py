"""A program's text without what is only for people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.capabilities.bare_source import bare_source
from pml.schemas.structure import Language

PYTHON = "a = 1  # é\n\n\nwhile x:  # why\n    s = '# none'   \n"
TYPESCRIPT = "const a = 1; // x\n/* a\n b */ const é = `// none ${a /* c */}`;\n"


def test_comments_blank_lines_and_spaces_at_ends_are_gone() -> None:
    assert bare_source(PYTHON, "python") == "a = 1\nwhile x:\n    s = '# none'"
    assert bare_source(TYPESCRIPT, "typescript") == "const a = 1;\n const é = `// none ${a }`;"


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("python", "a = 1\nb = 2", "a = 1\n# more\nb = 2 # two\n\n"),
        ("python", "a = 1\r\nb = 2\r\n", "a = 1\nb = 2"),
        ("typescript", "let a = 1;", "/** all */\nlet a = 1; // one\n"),
    ],
)
def test_the_same_program_with_other_comments_has_the_same_text(
    language: Language, one: str, other: str
) -> None:
    assert bare_source(one, language) == bare_source(other, language)


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("python", "while a < 1:\n    b()", "while a < 2:\n    b()"),
        ("python", "if a:\n    b()\n    c()", "if a:\n    b()\nc()"),
        ("typescript", "let a = '// 1';", "let a = '// 2';"),
    ],
)
def test_another_program_has_another_text(language: Language, one: str, other: str) -> None:
    assert bare_source(one, language) != bare_source(other, language)


@given(st.text(max_size=200), st.sampled_from(["python", "typescript"]))
def test_any_text_has_one(text: str, language: Language) -> None:
    bare = bare_source(text, language)
    assert all(line == line.rstrip() and line for line in bare.split("\n")) or not bare

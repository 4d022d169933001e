"""Whatever text comes: a structure that JSON keeps, or an error with its place, and never anything else."""

from __future__ import annotations

import re
from time import process_time
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pml.processors.capabilities.analysing import structure_of
from pml.schemas.errors import SourceError
from pml.schemas.structure import Structure
from tests.capabilities.case_table import read_cases
from tests.capabilities.programs import Written, programs

Language = Literal["python", "typescript"]
LANGUAGES = st.sampled_from(["python", "typescript"])
SECONDS_MAX = 20.0
"""Of the processor; the longest program of the tests takes about a tenth of it on a quiet machine."""
SOURCES = [
    case[language] for _, case in read_cases() for language in ("python", "typescript") if language in case
]
WORDS = r"""
    await async def function const let return if else elif for of in while match switch case default break
    mcp . s one two ( ) [ ] { } , : ; = == === => + - * / % && || and or not ! ? ?? ... ** // # ` ${ } " ' \
    True false null None undefined a b x 0 1 2.5 1e9 "t" `t` f"{a}" asyncio.gather Promise.all .items .length
    lambda class try catch except finally with as import from yield del delete new typeof capabilities args
    .append(a) .push(a) .then( _ * ** @ 日本
"""
TOKENS = st.sampled_from([*WORDS.split(), "\n", "\n    ", "\t", "\0", "\ud800"])
FUZZ = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def understood(code: str, language: Language) -> Structure | None:
    """What is made of a text, if it is of its language."""
    message, began = "", process_time()
    try:
        found = structure_of(code, language)
    except SourceError as error:
        found, message = None, str(error)
    assert process_time() - began < SECONDS_MAX
    if found is None:
        assert re.match(r"line [1-9]\d*, column [1-9]\d*: .", message), message
    else:
        assert Structure.model_validate_json(found.model_dump_json(by_alias=True)) == found
    return found


@FUZZ
@given(code=st.text(), language=LANGUAGES)
def test_any_text(code: str, language: Language) -> None:
    understood(code, language)


@FUZZ
@given(tokens=st.lists(TOKENS, max_size=40), language=LANGUAGES)
def test_any_words_of_the_languages(tokens: list[str], language: Language) -> None:
    understood(" ".join(tokens), language)


@FUZZ
@given(data=st.data(), language=LANGUAGES)
def test_programs_with_something_cut_out_or_put_in(data: st.DataObject, language: Language) -> None:
    code = data.draw(st.sampled_from(SOURCES))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(code)))
        end = data.draw(st.integers(start, min(len(code), start + 20)))
        code = code[:start] + data.draw(TOKENS | st.just("") | st.sampled_from(SOURCES)) + code[end:]

    understood(code, language)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(program=programs())
def test_programs_survive_json(program: Written) -> None:
    assert understood(program.python, "python") is not None
    assert understood(program.typescript, "typescript") is not None


@pytest.mark.parametrize(
    ("code", "language"),
    [
        ("return " + "(" * 5_000 + "1" + ")" * 5_000, "python"),
        ("return " + "(" * 5_000 + "1" + ")" * 5_000, "typescript"),
        ("return " + " + ".join(["a"] * 3_000), "python"),
        ("return " + " + ".join(["a"] * 3_000), "typescript"),
        ("return " + " + ".join(["a"] * 150), "python"),
        ("return " + "[" * 150 + "]" * 150, "typescript"),
        ("if (a) {" * 400 + "}" * 400, "typescript"),
        (
            "".join(f"{' ' * depth}if a{depth}:\n" for depth in range(90)) + " " * 90 + "await mcp.s.one()",
            "python",
        ),
        ("a = await mcp.s.one()\nawait mcp.s.two(x=a['" + "k" * 5_000 + "'])", "python"),
        (f"await mcp.s.one(x={'n' * 500})", "python"),
        ("await mcp.s.one(x=args[''])", "python"),
        ("return `${a.b || '\\n'} ${a['x\\n']} ${\"'\" + a + '\"'}`", "typescript"),
        ("return `\\ud800 ${a}`", "typescript"),
        ("return " + "9" * 4_000, "python"),
        ("return -" * 1 + "1" + "0" * 400, "typescript"),
    ],
)
def test_what_is_too_long_too_deep_or_of_odd_letters(code: str, language: Language) -> None:
    understood(code, language)


@pytest.mark.parametrize("language", ["python", "typescript"])
def test_a_program_with_more_calls_than_a_workflow_may_have_is_refused(language: Language) -> None:
    structure = understood("await mcp.s.one();\n" * 1_200, language)

    assert structure is not None
    assert [item.reason for item in structure.unsupported] == ["it has more calls than a workflow may have"]


def test_loops_in_loops_end_in_time() -> None:
    nested = "".join(f"{' ' * depth}for i{depth} in range(100):\n" for depth in range(5))

    structure = understood(nested + "     x = i0", "python")

    assert structure is not None
    assert [item.reason for item in structure.unsupported] == ["it takes too many steps to see through"]

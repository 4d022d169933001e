"""What makes two programs the same capability."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.capabilities.analysing import structure_of
from pml.processors.capabilities.identity import (
    NAME_CHARACTERS_MAX,
    capability_id,
    capability_name,
    parameterised,
)
from pml.schemas.structure import StructureParameter, TaskNode
from pml.schemas.workflow import Parameter

PYTHON = """
page = await mcp.fs.read(path="a.md")
if page.size > 10:
    await mcp.fs.write(path="b.md", content=page.text)
"""
SAME = {
    "other names and literals": PYTHON.replace("page", "x").replace("a.md", "z.md"),
    "a parameter in the place of a literal": PYTHON.replace('"a.md"', "source"),
    "another order of names": PYTHON.replace(
        'path="b.md", content=page.text', 'content=page.text, path="b.md"'
    ),
    "a comment and a helper": "def read(p):\n    return mcp.fs.read(path=p)  # later\n"
    + PYTHON.replace('mcp.fs.read(path="a.md")', 'read("a.md")'),
}
OTHER = {
    "another tool": PYTHON.replace("fs.write", "fs.append"),
    "another condition": PYTHON.replace("> 10", "> 20"),
    "another field": PYTHON.replace("page.text", "page.body"),
    "one literal in two places": PYTHON.replace("b.md", "a.md"),
    "no condition": PYTHON.replace("if page.size > 10:", "if True:"),
    "one call more": PYTHON + "await mcp.fs.read(path='c.md')\n",
    "a value to give back": PYTHON + "return page\n",
}
TYPESCRIPT = """
const page = await mcp.fs.read({ path: "a.md" });
if (page.size > 10) await mcp.fs.write({ path: "b.md", content: page.text });
"""


def identified(code: str) -> str:
    return capability_id(structure_of(code, "python"))


def test_an_id_is_a_word_and_twelve_digits() -> None:
    word, _, digits = identified(PYTHON).partition("_")

    assert word == "cap"
    assert len(digits) == 12
    assert int(digits, 16) >= 0


@pytest.mark.parametrize("code", SAME.values(), ids=SAME)
def test_what_is_only_written_differently_is_the_same(code: str) -> None:
    assert identified(code) == identified(PYTHON)


@pytest.mark.parametrize("code", OTHER.values(), ids=OTHER)
def test_what_does_something_else_is_another(code: str) -> None:
    assert identified(code) != identified(PYTHON)


def test_both_languages_give_the_same() -> None:
    assert capability_id(structure_of(TYPESCRIPT, "typescript")) == identified(PYTHON)


def test_schemas_change_nothing_of_who_it_is() -> None:
    structure = structure_of(PYTHON, "python")
    without = structure.model_copy(
        update={"edges": tuple(edge for edge in structure.edges if edge.type != "provides")}
    )

    assert capability_id(structure) == capability_id(without)


def test_each_literal_is_a_parameter_with_that_default() -> None:
    general = parameterised(structure_of(PYTHON, "python"))

    assert general.parameters == (
        StructureParameter(name="path", required=False, default="a.md"),
        StructureParameter(name="path_2", required=False, default="b.md"),
    )
    calls = [node for node in general.nodes if isinstance(node, TaskNode)]
    assert [node.arguments["path"] for node in calls] == [
        Parameter(parameter_name="path"),
        Parameter(parameter_name="path_2"),
    ]


def test_the_same_literal_under_the_same_name_is_one_parameter() -> None:
    code = "await mcp.fs.stat(path='a')\nawait mcp.fs.read(path='a', mode='a')\nawait mcp.fs.read(path=1)\n"
    general = parameterised(structure_of(code, "python"))

    assert [(item.name, item.default) for item in general.parameters] == [
        ("path", "a"),
        ("mode", "a"),
        ("path_2", 1),
    ]


def test_a_name_that_the_program_takes_already_is_left_to_it() -> None:
    general = parameterised(structure_of("await mcp.a.b(x=path, path='p')", "python"))

    assert [(item.name, item.required) for item in general.parameters] == [("path", True), ("path_2", False)]


def test_parts_of_objects_and_lists_are_named_after_their_field() -> None:
    code = "a = await mcp.s.one()\nawait mcp.s.two(body={'id': a.id, 'tag': 't', 'list': [a.id, 1]})"
    general = parameterised(structure_of(code, "python"))

    assert [(item.name, item.default) for item in general.parameters] == [("tag", "t"), ("list", 1)]


def test_there_is_nothing_left_to_make_general() -> None:
    once = parameterised(structure_of(PYTHON, "python"))

    assert parameterised(once) == once
    assert capability_id(once) == identified(PYTHON)


@pytest.mark.parametrize(
    ("intent", "taken", "name"),
    [
        ("Write release notes since the last tag", [], "write-release-notes-since-the-last-tag"),
        ("  Résumé: l'été!  ", [], "resume-l-ete"),
        ("日本語", [], "capability"),
        ("", ["capability", "capability-2"], "capability-3"),
        ("Sum up", ["sum-up"], "sum-up-2"),
    ],
)
def test_a_name_is_the_intent_as_a_word(intent: str, taken: list[str], name: str) -> None:
    assert capability_name(intent, taken) == name


@given(intent=st.text(max_size=200), taken=st.sets(st.sampled_from(["a", "a-2", "a-3", "capability"])))
def test_a_name_is_short_plain_and_free(intent: str, taken: set[str]) -> None:
    name = capability_name(intent, taken)

    assert name not in taken
    assert 0 < len(name) <= NAME_CHARACTERS_MAX + 2
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


@pytest.mark.parametrize("number", [10**30, -(10**30), "1e999", 2**63 - 1])
def test_a_number_that_json_cannot_say_is_no_literal(number: object) -> None:
    structure = structure_of(f"await mcp.a.b(x={number})", "python")

    assert capability_id(structure).startswith("cap_")

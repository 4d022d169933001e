"""What programs take from outside, also those that no analysis follows through."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.capabilities.analysing import read
from pml.processors.capabilities.taken import taken_by
from pml.schemas.errors import SourceError
from pml.schemas.structure import Language, StructureParameter

PYTHON = """
import json
from math import floor as low
limit = low(args.get("limit", 3))
def helper(page, *rest, **more):
    return page + offset
while len(limits) < args.most and "mode" in args:
    try:
        for a, (b, *c) in pairs:
            limits.append(helper(a) + b)
    except ValueError as error:
        print(error)
    match kind:
        case {"x": x, **others}:
            pass
        case [first, *others] as whole:
            await mcp.files.read(path=args["path"], text=str(whole))
squares = [n * n for n in numbers if (m := n)]
"""
TYPESCRIPT = """
const { a, b = 2, c: d, e: f = 4 } = args;
const limit = args.limit ?? 3;
function helper(page: number, ...rest: Page[]): number { return page + offset; }
for (const item of items) {
  try {
    await mcp.files.read({ path: args["path"], mode, kind: args?.kind || "x" });
  } catch (error) {
    console.log(`${error} ${JSON.stringify(helper(item))}`);
  }
}
const [first, ...others] = pairs;
const g = async (n) => n * factor;
outer: while (typeof debug === "undefined" && Math.max(a, d) < most) { break outer; }
"""


def taken(source: str, language: Language) -> dict[str, bool]:
    return {item.name: item.required for item in taken_by(source, language, ())}


def test_names_that_nothing_gives_a_value_and_fields_of_args() -> None:
    assert taken(PYTHON, "python") == {
        "limit": False,
        "offset": True,
        "limits": True,
        "most": True,
        "mode": False,
        "pairs": True,
        "kind": True,
        "path": True,
        "numbers": True,
    }
    assert taken(TYPESCRIPT, "typescript") == {
        "a": True,
        "b": False,
        "c": True,
        "e": False,
        "limit": False,
        "offset": True,
        "items": True,
        "path": True,
        "mode": True,
        "kind": False,
        "pairs": True,
        "factor": True,
        "debug": False,
        "most": True,
    }


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("python", "def main(path):\n    while path:\n        pass"),
        ("python", "global x\nx = 1\ndel x\nlambda y, /, z=1: y + z"),
        ("typescript", "export default function main({ path }: Args) { while (path) {} }"),
        (
            "typescript",
            "enum Kind { A }\nclass Page { x = Kind.A; }\nnew Page();\nimport type { T } from 'x';",
        ),
        ("typescript", "const o = { key: 1, other() { return this.key; } }; o.key;"),
    ],
)
def test_what_a_program_names_itself_is_not_taken(language: Language, source: str) -> None:
    assert taken(source, language) == {}


def test_what_the_analysis_found_stays_as_it_is() -> None:
    known = (StructureParameter(name="a", required=False, default=3),)
    assert taken_by("while a < b:\n    pass", "python", known) == (*known, StructureParameter(name="b"))


def test_a_name_that_is_looked_for_with_a_default_need_not_be_given() -> None:
    assert taken("if 'a' in args:\n    await mcp.s.x(a=args.a)", "python") == {"a": False}


def test_a_name_that_nobody_can_give_is_left_out() -> None:
    assert taken(f"while {'x' * 300}: pass", "python") == {}


@given(
    st.text(alphabet="args.path=[]{}()'\"\n :ifwhler", max_size=80), st.sampled_from(["python", "typescript"])
)
def test_any_program_takes_something_or_nothing(source: str, language: Language) -> None:
    try:
        read(source, language)
    except SourceError:
        return
    names = [item.name for item in taken_by(source, language, ())]
    assert len(names) == len(set(names))

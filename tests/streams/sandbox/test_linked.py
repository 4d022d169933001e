"""Programs that call capabilities which run in the sandbox too: in one interpreter, with their own names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pml.schemas.stepping import Linked, SandboxProgram
from pml.schemas.structure import Language, StructureParameter
from pml.streams.sandbox.programs import Source
from tests.streams.sandbox.running import Play, programs

PYTHON = """\
from __future__ import annotations
path = "own"
async def f(x):
    return await capabilities.total(pages=x, path="p")
n = await f(3)
m = await capabilities["total"](path="q", pages=1)
k = await capabilities.reads({"path": "z"})
both = await asyncio.gather(capabilities.reads(path="g"), capabilities.reads(path="h", more=0))
return [n, m, k, both, path]
"""
PYTHON_TOTAL = """\
from __future__ import annotations
# sums
def add(a, b):
    return a + b
total = 0
for i in range(pages):
    page = await mcp.files.read_file(path=f"{path}{i}")
    total = add(total, page.size)
if total > 100:
    raise ValueError("too much")
return total
"""
PYTHON_READS = """\
async def main(path, more=5):
    found = await mcp.files.stat(path=path)
    return found.size + more
"""
TYPESCRIPT = """\
const path = "own";
const f = async (x: number) => await capabilities.total({ pages: x, path: "p" });
const n = await f(3);
const m = await capabilities["total"]({ path: "q", pages: 1 });
const k = await capabilities.reads({ path: "z" });
const h = { path: "h", more: 0 };
const both = await Promise.all([capabilities.reads({ path: "g" }), capabilities.reads(h)]);
return [n, m, k, both, path];
"""
TYPESCRIPT_TOTAL = """\
// sums
const add = (a: number, b: number): number => a + b;
let total = 0;


for (let i = 0; i < pages; i++) {
  const page = await mcp.files.read_file({ path: `${path}${i}` });
  total = add(total, page.size);
}
if (total > 100) { throw new Error("too much"); }
return total;
"""
TYPESCRIPT_READS = """\
export default async function main(path: string, more = 5) {
  const found = await mcp.files.stat({ path });
  return found.size + more;
}
"""
SOURCES: list[tuple[Language, tuple[str, str, str]]] = [
    ("python", (PYTHON, PYTHON_TOTAL, PYTHON_READS)),
    ("typescript", (TYPESCRIPT, TYPESCRIPT_TOTAL, TYPESCRIPT_READS)),
]


def linked(name: str, source: str, *parameters: str) -> Linked:
    taken = tuple(StructureParameter(name=each) for each in parameters)
    return Linked(capability_id=f"cap_{name}", names=(name, f"cap_{name}"), source=source, parameters=taken)


def source_of(language: Language, main: str, total: str, reads: str) -> Source:
    inner = (linked("total", total, "pages", "path"), linked("reads", reads, "path", "more"))
    return Source(SandboxProgram(language=language, source=main, linked=inner), {"path": "given"})


async def played(cache: Path, source: Source, size: int) -> tuple[dict[str, Any], list[list[Any]]]:
    async with programs(cache) as among:
        play = Play(among, source, lambda tool, arguments: {"value": {"size": size}})
        end = await play.end()
    return end, [[call["arguments"]["path"] for call in step.calls] for step in play.steps]


@pytest.mark.parametrize(("language", "texts"), SOURCES)
async def test_a_linked_capability_runs_as_a_function_of_the_program(
    language: Language, texts: tuple[str, str, str], tmp_path: Path
) -> None:
    end, paths = await played(tmp_path, source_of(language, *texts), 1)
    assert end == {"value": [3, 1, 6, [6, 1], "own"]}
    assert paths == [["p0"], ["p1"], ["p2"], ["q0"], ["z"], ["g", "h"]]


@pytest.mark.parametrize(("language", "texts"), SOURCES)
async def test_an_error_says_in_which_capability_and_on_which_line_of_it(
    language: Language, texts: tuple[str, str, str], tmp_path: Path
) -> None:
    end, _ = await played(tmp_path, source_of(language, *texts), 60)
    assert end["error"]["message"].startswith("capability total, line 10: ")
    assert end["error"]["line"] is None


@pytest.mark.parametrize(("language", "texts"), SOURCES)
async def test_an_error_of_the_program_keeps_its_line(
    language: Language, texts: tuple[str, str, str], tmp_path: Path
) -> None:
    main = 'a = 1\nraise ValueError("own")' if language == "python" else '\nthrow new Error("own");'
    end, _ = await played(tmp_path, source_of(language, main, *texts[1:]), 1)
    assert end["error"]["line"] == 2
    assert "own" in end["error"]["message"]


@pytest.mark.parametrize(("language", "texts"), SOURCES)
async def test_what_a_capability_is_given_is_its_own(
    language: Language, texts: tuple[str, str, str], tmp_path: Path
) -> None:
    if language == "python":
        main = "items = [1]\nawait capabilities.total(pages=items)\nreturn items"
        change = "pages.append(2)\nawait mcp.files.stat(path='x')"
    else:
        main = "const items = [1];\nawait capabilities.total({ pages: items });\nreturn items;"
        change = 'pages.push(2);\nawait mcp.files.stat({ path: "x" });'
    end, paths = await played(tmp_path, source_of(language, main, change, texts[2]), 1)
    assert (end, paths) == ({"value": [1]}, [["x"]])


@pytest.mark.parametrize(
    ("language", "main"),
    [
        ("python", "while True:\n    return await capabilities.other(x=1)"),
        ("typescript", "while (true) { return await capabilities.other({ x: 1 }); }"),
    ],
)
async def test_a_capability_that_is_not_linked_is_asked_for(
    language: Language, main: str, tmp_path: Path
) -> None:
    async with programs(tmp_path) as among:
        play = Play(among, source_of(language, main, "", ""))
        said = await play.step()
    assert said == {"calls": [{"capability": "other", "arguments": {"x": 1}}]}

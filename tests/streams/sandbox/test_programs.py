"""What programs mean in the sandbox: the same in both languages, and the same each time they are run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pml.schemas.errors import SourceError, WorkflowInvalid
from pml.schemas.structure import Language
from pml.streams.sandbox.errors import NotDeterministic, SandboxDied
from tests.streams.sandbox.running import SETTINGS, Play, echo, played, programs, source

LOOP_PYTHON = """
seen = []
cursor = 0
while cursor is not None:
    page = await mcp.pages.read(cursor=cursor)
    seen.extend(page.names)
    cursor = page["next"]
return {"seen": seen, "folder": folder}
"""
LOOP_TYPESCRIPT = """
const seen: string[] = [];
let cursor: number | null = 0;
while (cursor !== null) {
  const page = await mcp.pages.read({ cursor });
  seen.push(...page.names);
  cursor = page.next;
}
return { seen, folder };
"""
LOOPS: list[tuple[Language, str]] = [("python", LOOP_PYTHON), ("typescript", LOOP_TYPESCRIPT)]


def pages(_: str, arguments: dict[str, Any]) -> dict[str, Any]:
    cursor = arguments["cursor"]
    return {"value": {"names": [f"n{cursor}"], "next": cursor + 1 if cursor < 2 else None}}


@pytest.mark.parametrize(("language", "text"), LOOPS)
async def test_a_loop_calls_once_a_step_until_it_ends(language: Language, text: str, tmp_path: Path) -> None:
    end, steps = await played(tmp_path, language, text, pages, folder="here")
    assert steps == [[("pages:read", {"cursor": number})] for number in range(3)]
    assert end == {"value": {"seen": ["n0", "n1", "n2"], "folder": "here"}}


@pytest.mark.parametrize(
    ("language", "text"),
    [
        (
            "python",
            "found = await asyncio.gather(mcp.a.x(n=1), mcp['b-c']['d-e'](n=2))\n"
            "last = await mcp.a.y(n=found[0].n + found[1].n)\nreturn last.n",
        ),
        (
            "typescript",
            'const [one, two] = await Promise.all([mcp.a.x({n: 1}), mcp["b-c"]["d-e"]({n: 2})]);\n'
            "const last = await mcp.a.y({n: one.n + two.n});\nreturn last.n;",
        ),
    ],
)
async def test_what_is_begun_together_is_one_step(language: Language, text: str, tmp_path: Path) -> None:
    end, steps = await played(tmp_path, language, text)
    assert steps == [[("a:x", {"n": 1}), ("b-c:d-e", {"n": 2})], [("a:y", {"n": 3})]]
    assert end == {"value": 3}


@pytest.mark.parametrize(
    ("language", "text"),
    [
        (
            "python",
            "try:\n    await mcp.bad.x(a=1)\nexcept Exception as error:\n    return str(error)",
        ),
        ("typescript", "try { await mcp.bad.x({a: 1}); } catch (error) { return error.message; }"),
    ],
)
async def test_a_program_catches_the_error_of_a_call(language: Language, text: str, tmp_path: Path) -> None:
    end, _ = await played(tmp_path, language, text)
    assert end == {"value": "TOOL_ERROR: it is broken"}


@pytest.mark.parametrize(
    ("language", "text", "line"),
    [
        ("python", "a = 1\n\n# words\nawait mcp.bad.x(a=a)\n", 4),
        ("typescript", "const a: number = 1;\n\n// words\nawait mcp.bad.x({a});\n", None),
        ("python", 'text = """one\ntwo"""\nraise ValueError(len(text))', 3),
        ("typescript", "interface A {\n  x: number\n}\nthrow new Error('o');", 4),
    ],
)
async def test_an_error_that_nobody_catches_ends_it_with_its_line(
    language: Language, text: str, line: int | None, tmp_path: Path
) -> None:
    end, _ = await played(tmp_path, language, text)
    assert end["error"]["code"] == "PROGRAM_ERROR"
    assert end["error"]["line"] == line


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "async def main(path, limit=5, args=None):\n    return [path, limit, args.path]"),
        (
            "typescript",
            "async function main(path: string, limit = 5, args: any) { return [path, limit, args.path] }",
        ),
        ("typescript", "export default async ({ path, limit = 5 }) => [path, limit, path];"),
        ("python", "return [path, args.get('limit', 5), args['path']]"),
        ("typescript", "return [path, args.limit ?? 5, args['path']];"),
    ],
)
async def test_a_program_takes_what_its_caller_gives(language: Language, text: str, tmp_path: Path) -> None:
    assert (await played(tmp_path, language, text, path="p"))[0] == {"value": ["p", 5, "p"]}


@pytest.mark.parametrize(
    ("language", "text"),
    [("python", "def main(path): return path"), ("typescript", "function main(path) { return path }")],
)
async def test_what_a_program_takes_must_be_given(language: Language, text: str, tmp_path: Path) -> None:
    with pytest.raises(WorkflowInvalid, match="takes path"):
        await played(tmp_path, language, text)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "mcp.a.x(n=1)\nreturn 7"),
        ("typescript", "mcp.a.x({n: 1}); return 7;"),
    ],
)
async def test_a_call_that_nobody_awaits_is_made(language: Language, text: str, tmp_path: Path) -> None:
    assert await played(tmp_path, language, text) == ({"value": 7}, [[("a:x", {"n": 1})]])


async def test_what_is_gathered_with_its_errors(tmp_path: Path) -> None:
    text = (
        "one, two = await asyncio.gather(mcp.bad.x(), mcp.a.y(n=2), return_exceptions=True)\n"
        "return [str(one), two.n]"
    )
    assert (await played(tmp_path, "python", text))[0] == {"value": ["TOOL_ERROR: it is broken", 2]}


async def test_all_settled(tmp_path: Path) -> None:
    text = "return (await Promise.allSettled([mcp.bad.x(), mcp.a.y({n: 2})])).map((x) => x.status);"
    assert (await played(tmp_path, "typescript", text))[0] == {"value": ["rejected", "fulfilled"]}


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "return len(await asyncio.gather(*[mcp.a.x(n=n) for n in range(450)]))"),
        (
            "typescript",
            "return (await Promise.all([...Array(450).keys()].map((n) => mcp.a.x({n})))).length;",
        ),
    ],
)
async def test_no_step_has_more_calls_than_a_layer_may(language: Language, text: str, tmp_path: Path) -> None:
    end, steps = await played(tmp_path, language, text)
    assert end == {"value": 450}
    assert [len(step) for step in steps] == [200, 200, 50]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "await asyncio.sleep(3600)\nreturn 1"),
        ("typescript", "await new Promise((done) => setTimeout(done, 3_600_000)); return 1;"),
        (
            "typescript",
            "const late = new Promise((_, no) => setTimeout(() => no(new Error('late')), 10));\n"
            "await Promise.race([mcp.a.x(), late]); return 1;",
        ),
    ],
)
async def test_no_time_passes(language: Language, text: str, tmp_path: Path) -> None:
    assert (await played(tmp_path, language, text))[0] == {"value": 1}


@pytest.mark.parametrize(("language", "text"), LOOPS)
async def test_a_program_goes_on_after_it_was_forgotten(
    language: Language, text: str, tmp_path: Path
) -> None:
    there = source(language, text, {"folder": "here"})
    async with programs(tmp_path) as among:
        play = Play(among, there, pages)
        for _ in range(2):
            assert "calls" in await play.step()
            await among.close()
        assert (await play.end())["value"]["seen"] == ["n0", "n1", "n2"]


@pytest.mark.parametrize(("language", "text"), LOOPS)
async def test_a_program_that_asks_for_something_else_the_second_time_is_found_out(
    language: Language, text: str, tmp_path: Path
) -> None:
    async with programs(tmp_path) as among:
        play = Play(among, source(language, text, {"folder": "here"}), pages)
        await play.step()
        await play.step()
        await among.close()
        play.steps[0] = replace(play.steps[0], calls=[{"tool": "pages:read", "arguments": {"cursor": 9}}])
        with pytest.raises(NotDeterministic):
            await play.step()


async def test_gathered_branches_are_the_same_each_time(tmp_path: Path) -> None:
    text = (
        "async def branch(n):\n    one = await mcp.a.x(n=n)\n    return (await mcp.a.y(n=one.n)).n\n"
        "return await asyncio.gather(*[branch(n) for n in range(8)])"
    )
    async with programs(tmp_path) as among:
        play = Play(among, source("python", text, {}))
        await play.step()
        await among.close()
        await play.step()
        await among.close()
        assert await play.end() == {"value": list(range(8))}


async def test_what_stands_too_long_or_is_too_many_is_ended(tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(update={"live_max": 2, "idle_s": 1e-9})
    async with programs(tmp_path, settings) as among:
        for number in range(3):
            looping = source("python", LOOP_PYTHON, {"folder": "x"})
            await Play(among, looping, pages, f"run_{number}").step()
        assert len(among.standing) <= 2
        await among.tend()
        assert among.standing == ()


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "found = await mcp.a.x()\nreturn len(found.text)"),
        ("typescript", "const found = await mcp.a.x(); return found.text.length;"),
    ],
)
async def test_a_large_result_reaches_its_program(language: Language, text: str, tmp_path: Path) -> None:
    large = "é" * 4_000_000

    def gives(_: str, __: dict[str, Any]) -> dict[str, Any]:
        return {"value": {"text": large}}

    assert (await played(tmp_path, language, text, gives))[0] == {"value": 4_000_000}


async def test_half_a_character_is_no_result(tmp_path: Path) -> None:
    with pytest.raises(SandboxDied, match="half a character"):
        await played(tmp_path, "typescript", "return '\\ud800';")


@pytest.mark.parametrize("text", ['import fs from "node:fs";', 'const fs = await import("node:fs");'])
async def test_nothing_is_imported(text: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="import"):
        await played(tmp_path, "typescript", text, echo)

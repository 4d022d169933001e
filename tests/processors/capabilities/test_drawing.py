from pml.processors.capabilities.analysing import structure_of
from pml.processors.capabilities.drawing import mermaid, outline, written
from pml.schemas.workflow import LiteralValue

PROGRAM = """
found = await mcp.fs.list(path="docs")
texts = []
for file in found.files:
    page = await mcp.fs.read(path=file.path)
    if page.size > 10:
        await mcp.log.write(text="long", data={"path": file.path, "tags": ["a", page.kind]})
    texts.append(page.text)
await asyncio.gather(mcp.a.b(t=texts), mcp.a.c(n=limit))
return await capabilities.summarize(texts=texts)
"""
OUTLINE = """\
n1  fs:list(path="docs")
l1  for each of n1.files
├─ n2  fs:read(path=l1.item.path)
└─ d1  page.size > 10 ?
   └─ true
      └─ n3  log:write(text="long", data={path: l1.item.path, tags: ["a", n2.kind]})
f1  at the same time
├─ 1
│  └─ n4  a:b(t=l1)
└─ 2
   └─ n5  a:c(n=args.limit)
c1  summarize(texts=l1)"""


def test_an_outline_shows_what_lies_in_which_branch_loop_or_fork() -> None:
    assert outline(structure_of(PROGRAM, "python")) == OUTLINE


def test_forks_inside_of_forks_and_branches_are_drawn_where_they_lie() -> None:
    code = """
async def pair():
    await asyncio.gather(mcp.a.b(), mcp.a.c())
if flag:
    await asyncio.gather(pair(), mcp.a.d())
"""

    assert outline(structure_of(code, "python")).splitlines() == [
        "d1  flag ?",
        "└─ true",
        "   └─ f1  at the same time",
        "      ├─ 1",
        "      │  └─ f2  at the same time",
        "      │     ├─ 1",
        "      │     │  └─ n1  a:b()",
        "      │     └─ 2",
        "      │        └─ n2  a:c()",
        "      └─ 2",
        "         └─ n3  a:d()",
    ]


def test_a_flowchart_has_a_line_for_each_node_and_each_edge() -> None:
    structure = structure_of(PROGRAM, "python")
    lines = mermaid(structure).splitlines()

    assert lines[0] == "flowchart TD"
    assert len(lines) == 1 + len(structure.nodes) + len(structure.edges)
    assert '    d1 -->|"true"| n3' in lines
    assert "    l1 -->|each| n2" in lines


def test_nothing_in_a_program_ends_a_label_of_a_flowchart() -> None:
    code = """await mcp.a.b(text='"] --> evil["<b>#quot;')"""
    lines = mermaid(structure_of(code, "python")).splitlines()

    assert len(lines) == 2
    assert lines[1].count('"') == 2
    assert "<b>" not in lines[1]


def test_a_long_literal_is_cut() -> None:
    assert len(written(LiteralValue(value="x" * 500))) == 40


def test_nothing_is_drawn_of_a_program_that_does_nothing() -> None:
    structure = structure_of("x = 1", "python")

    assert outline(structure) == ""
    assert mermaid(structure) == "flowchart TD"

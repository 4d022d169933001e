import pytest

from pml.processors.capabilities.analysing import structure_of
from pml.processors.capabilities.provides import ToolSchemas, coverage_of
from pml.schemas.structure import Structure

TEXT = {"type": "object", "properties": {"content": {"type": "string"}}}
STAT = {"type": "object", "properties": {"exists": {"type": "boolean"}, "path": {"type": "string"}}}


def takes(*required: str, optional: tuple[str, ...] = ()) -> dict[str, object]:
    names = (*required, *optional)
    return {"type": "object", "properties": {name: {} for name in names}, "required": list(required)}


def provided(structure: Structure) -> set[tuple[str, str, str | None]]:
    return {(edge.source, edge.target, edge.coverage) for edge in structure.edges if edge.type == "provides"}


def test_all_that_is_required_is_strict_and_a_part_of_it_partial() -> None:
    read, parse = ToolSchemas(output=TEXT), ToolSchemas(input=takes("json"))

    assert coverage_of(read, parse) == "strict"
    assert coverage_of(read, ToolSchemas(input=takes("body", "url"))) == "partial"
    assert coverage_of(read, ToolSchemas(input=takes("url", optional=("text",)))) == "optional"
    assert coverage_of(read, ToolSchemas(input=takes("url"))) is None
    assert coverage_of(ToolSchemas(), parse) is None


@pytest.mark.parametrize("odd", [5, "content", [["content"]], [{"content": 1}], None, True])
def test_a_schema_that_names_no_fields_gives_and_takes_nothing(odd: object) -> None:
    read, parse = ToolSchemas(output=TEXT), ToolSchemas(input=takes("json"))
    schema = {"type": "object", "properties": odd, "required": odd}

    assert coverage_of(ToolSchemas(output=schema), parse) is None
    assert coverage_of(read, ToolSchemas(input=schema)) is None


def test_the_example_of_the_specification_has_the_edge_that_its_schemas_give() -> None:
    code = """
file = await mcp.fs.stat(path=path)
if file.exists:
    return await mcp.fs.read(path=path)
else:
    await mcp.fs.create(name=path)
"""
    schemas = {"fs:stat": ToolSchemas(output=STAT), "fs:read": ToolSchemas(input=takes("path"))}

    assert provided(structure_of(code, "python", schemas)) == {("n1", "n2", "strict")}


def test_schemas_say_nothing_of_calls_that_no_way_leads_between() -> None:
    code = """
if flag:
    await mcp.a.read(path="x")
else:
    await mcp.a.parse(json="y")
"""
    schemas = {"a:read": ToolSchemas(output=TEXT), "a:parse": ToolSchemas(input=takes("json"))}

    assert provided(structure_of(code, "python", schemas)) == set()


def test_a_reference_is_an_edge_without_schemas_wherever_it_stands() -> None:
    code = """
a = await mcp.s.one()
b = await mcp.s.two(x={"deep": [a.id]}, y=f"{a.name}!")
await mcp.s.three(z=b.n + 1)
"""

    assert provided(structure_of(code, "python")) == {("n1", "n2", "unknown"), ("n2", "n3", "unknown")}


def test_a_loop_gives_its_items_inside_and_what_each_time_gave_after_it() -> None:
    code = """
found = await mcp.s.list()
texts = [(await mcp.s.read(path=each.path)).text for each in found.files]
await mcp.s.join(texts=texts)
"""

    assert provided(structure_of(code, "python")) == {("n1", "n2", "unknown"), ("n2", "n3", "unknown")}


def test_what_a_loop_repeats_comes_before_what_follows_the_loop() -> None:
    code = """
for each in (await mcp.s.list()).files:
    await mcp.s.read(path=each.path)
await mcp.s.parse(json="{}")
"""
    schemas = {"s:read": ToolSchemas(output=TEXT), "s:parse": ToolSchemas(input=takes("json"))}

    assert ("n2", "n3", "strict") in provided(structure_of(code, "python", schemas))

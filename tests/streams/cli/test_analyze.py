from pathlib import Path

import orjson
import pytest

from tests.streams.cli.conftest import Pml

TYPESCRIPT = """\
const file = await mcp.fs.stat({ path });
if (file.exists) {
  const content = await mcp.fs.read({ path });
  return content;
} else {
  await mcp.fs.create({ path });
  await mcp.fs.write({ path, content: "" });
}
"""
SCHEMAS = {
    "fs:stat": {"outputSchema": {"type": "object", "properties": {"exists": {}, "path": {}}}},
    "fs:read": {"inputSchema": {"type": "object", "properties": {"path": {}}, "required": ["path"]}},
}


def test_the_example_of_the_specification_has_its_nodes_and_edges(pml: Pml, tmp_path: Path) -> None:
    (tmp_path / "job.ts").write_text(TYPESCRIPT)
    (tmp_path / "schemas.json").write_bytes(orjson.dumps(SCHEMAS))

    result = pml("analyze", "job.ts", "--schemas", "schemas.json", "--json")

    assert result.exit_code == 0
    found = orjson.loads(result.stdout)
    named = [(node["id"], node["type"], node.get("tool") or node.get("condition")) for node in found["nodes"]]
    assert named == [
        ("n1", "task", "fs:stat"),
        ("d1", "decision", "file.exists"),
        ("n2", "task", "fs:read"),
        ("n3", "task", "fs:create"),
        ("n4", "task", "fs:write"),
    ]
    edges = {(edge["from"], edge["to"], edge["type"], edge["outcome"]) for edge in found["edges"]}
    assert edges == {
        ("n1", "d1", "sequence", None),
        ("d1", "n2", "conditional", "true"),
        ("d1", "n3", "conditional", "false"),
        ("n3", "n4", "sequence", None),
        ("n1", "n2", "provides", None),
    }
    assert (found["unsupported"], found["tools"][0]) == ([], "fs:stat")


def test_tools_without_a_name_are_passed_over_in_a_list(pml: Pml, tmp_path: Path) -> None:
    (tmp_path / "job.ts").write_text(TYPESCRIPT)
    listed = [{"name": name, **given} for name, given in SCHEMAS.items()]
    (tmp_path / "schemas.json").write_bytes(orjson.dumps({"tools": [*listed, {"name": ["fs:stat"]}, {}]}))

    result = pml("analyze", "job.ts", "--schemas", "schemas.json", "--json")

    assert result.exit_code == 0
    edges = orjson.loads(result.stdout)["edges"]
    assert [(edge["from"], edge["to"]) for edge in edges if edge["type"] == "provides"] == [("n1", "n2")]


def test_a_person_sees_an_outline_and_how_it_runs(pml: Pml, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("a = await mcp.s.one(limit=args.get('n', 3))\nreturn a.x\n")

    result = pml("analyze", "job.py")

    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "n1  s:one(limit=args.n)"
    assert "n = 3" in result.stdout
    assert "a.x" not in result.stdout
    assert "n1.x" in result.stdout
    assert "runs as a DAG of 1 node" in result.stderr


def test_what_no_dag_expresses_is_listed(pml: Pml) -> None:
    result = pml("analyze", "-", "--language", "python", stdin="while x:\n    await mcp.a.b()\n")

    assert result.exit_code == 0
    assert "line 1: `while`" in result.stdout
    assert "runs in the sandbox: line 1: `while`" in result.stderr


def test_a_flowchart_can_be_had(pml: Pml) -> None:
    result = pml("analyze", "-", "--language", "typescript", "--mermaid", stdin="await mcp.a.b();")

    assert result.stdout.splitlines() == ["flowchart TD", '    n1["n1 a:b()"]']


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["analyze", "nothing.py"], "cannot be read"),
        (["analyze", "schemas.json"], "says no language"),
        (["analyze", "-", "--language", "cobol"], "python or typescript"),
        (["analyze", "broken.py"], "line 1, column 5"),
        (["analyze", "job.py", "--schemas", "broken.py"], "no mapping of tools"),
    ],
    ids=["no file", "no language", "unknown language", "no Python", "no schemas"],
)
def test_mistakes_are_told_in_one_line(pml: Pml, tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "broken.py").write_text("x = (\n")
    (tmp_path / "job.py").write_text("await mcp.a.b()\n")
    (tmp_path / "schemas.json").write_text("{}")

    result = pml(*arguments)

    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert said in result.stderr


def test_whom_its_calls_wait_for_is_known_before_it_runs(pml: Pml, tmp_path: Path) -> None:
    (tmp_path / "job.ts").write_text(TYPESCRIPT)
    assert orjson.loads(pml("analyze", "job.ts", "--json").stdout)["asks_person"] is None
    file = tmp_path / "mcp-permissions.yaml"
    file.write_text('tools: {"fs:*": {scope: readonly, approval: auto}, "fs:write": {approval: hil}}')
    found = orjson.loads(pml("analyze", "job.ts", "--json").stdout)["asks_person"]
    assert list(found) == ["fs:write"]
    file.rename(tmp_path / "other.yaml")
    shown = pml("analyze", "job.ts", "--permissions", "other.yaml").stdout
    assert "fs:write needs a person's approval for each call (approval: hil)" in shown

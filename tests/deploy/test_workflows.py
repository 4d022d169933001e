"""The example workflows, run by hand against the real servers of `mcp-servers.yaml`."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from string import Template
from typing import Any

import pytest
import yaml
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import ToolAnnotations

from pml.deploy.examples import world
from pml.processors.speculation.guard import can_speculate
from pml.processors.workflow import conditions
from pml.processors.workflow.arguments import Resolved, Values, resolve_strictly
from pml.processors.workflow.check import checked_graph
from pml.processors.workflow.graph import Graph, Node, build
from pml.schemas.calls import ToolResult, task_value
from pml.schemas.catalog import ServerTools, Tool, ToolHints
from pml.schemas.permissions import PermissionFile
from pml.schemas.workflow import Workflow

EXAMPLES = Path(world.__file__).parent
CHECKOUT = EXAMPLES.parents[1]
FILES = sorted((EXAMPLES / "workflows").glob("*.yaml"))
PERMISSIONS = PermissionFile.model_validate(
    yaml.safe_load((EXAMPLES / "mcp-permissions.yaml").read_text(encoding="utf-8"))
)
SHAPE_ONLY = "time:"  # their answers hold today's date

Outcome = tuple[str, Any]
Clients = Mapping[str, Client]


def load(file: Path) -> Workflow:
    return Workflow.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))


@asynccontextmanager
async def connected(folder: Path) -> AsyncIterator[Clients]:
    """A client for each configured server, over `folder`/root and `folder`/repository."""
    variables = {
        "PML_PYTHON": sys.executable,
        "PML_DEMO_ROOT": str(folder / "root"),
        "PML_DEMO_REPOSITORY": str(folder / "repository"),
        "PML_DEMO_CALL_LOG": str(folder / "calls.jsonl"),
        "PML_DEMO_LATENCY_MS": "0",
    }
    text = (EXAMPLES / "mcp-servers.yaml").read_text(encoding="utf-8")
    servers = yaml.safe_load(Template(text).substitute(variables))["mcpServers"]
    async with AsyncExitStack() as stack:
        yield {
            name: await stack.enter_async_context(
                Client(stdio_client(StdioServerParameters(command=server["command"], args=server["args"])))
            )
            for name, server in servers.items()
        }


async def listed(clients: Clients) -> dict[str, ServerTools]:
    return {name: await _listed(name, client) for name, client in clients.items()}


async def _listed(name: str, client: Client) -> ServerTools:
    tools = (await client.list_tools()).tools
    return ServerTools(
        server=name,
        status="listed",
        tools=tuple(
            Tool(name=tool.name, input_schema=tool.input_schema, hints=_hints(tool.annotations))
            for tool in tools
        ),
    )


def _hints(annotations: ToolAnnotations | None) -> ToolHints:
    if annotations is None:
        return ToolHints()
    return ToolHints(
        read_only=annotations.read_only_hint,
        destructive=annotations.destructive_hint,
        open_world=annotations.open_world_hint,
    )


async def run(graph: Graph, context: Mapping[str, Any], clients: Clients) -> dict[str, Outcome]:
    """Layer after layer, task after task: status and value of each."""
    outcomes: dict[str, Outcome] = {}
    for layer in graph.layers:
        for name in layer:
            outcomes[name] = await _run_task(graph, graph.nodes[name], context, outcomes, clients)
    return outcomes


async def _run_task(
    graph: Graph, node: Node, context: Mapping[str, Any], outcomes: dict[str, Outcome], clients: Clients
) -> Outcome:
    results = {name: value for name, (status, value) in outcomes.items() if status == "completed"}
    if any(outcomes[name][0] == "failed" for name in node.depends_on):
        return "skipped", None
    for condition in node.conditions:
        if conditions.outcome(graph.decisions[condition.node].expression, results) != condition.outcome:
            return "skipped", None
    resolved = resolve_strictly(node.arguments, Values(context, results))
    assert isinstance(resolved, Resolved), (node.id, resolved)
    server, _, tool = node.tool.partition(":")
    answer = await clients[server].call_tool(tool, resolved.arguments)
    content = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in answer.content]
    value = task_value(ToolResult(content=content, structured=answer.structured_content))
    return ("failed" if answer.is_error else "completed"), value


async def run_all(folder: Path, clients: Clients) -> dict[str, tuple[dict[str, Outcome], str]]:
    """Every workflow on a world of its own: its outcomes, and the digest of what it left."""
    servers, done = await listed(clients), {}
    for file in FILES:
        world.build(folder / "root")
        world.clone(folder / "snapshot", folder / "repository", linked=True)
        workflow = load(file)
        graph = checked_graph(workflow, servers)
        outcomes = await run(graph, workflow.context | {"repository": str(folder / "repository")}, clients)
        left = world.digest(folder / "root") + world.digest(folder / "repository")
        done[file.stem] = (outcomes, left)
    return done


def unlike(outcomes: Mapping[str, Outcome], status: str = "completed") -> dict[str, str]:
    """The tasks that did not end like that."""
    return {name: ended for name, (ended, _) in outcomes.items() if ended != status}


async def test_every_workflow_runs_against_the_real_servers_twice_the_same(tmp_path: Path) -> None:
    world.clone(CHECKOUT, tmp_path / "snapshot")
    world.build(tmp_path / "root")
    world.clone(tmp_path / "snapshot", tmp_path / "repository")
    async with connected(tmp_path) as clients:
        first = await run_all(tmp_path, clients)
        second = await run_all(tmp_path, clients)
    assert len(first) >= 6
    for name, (outcomes, left) in first.items():
        other_outcomes, other_left = second[name]
        assert left == other_left, name
        assert _comparable(name, outcomes) == _comparable(name, other_outcomes), name
    _check_outcomes({name: outcomes for name, (outcomes, _) in first.items()})


def _comparable(name: str, outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    tools = {task.id: task.tool or "" for task in load(EXAMPLES / "workflows" / f"{name}.yaml").tasks}
    return {task: ended for task, ended in outcomes.items() if not tools[task].startswith(SHAPE_ONLY)}


def _check_outcomes(done: Mapping[str, dict[str, Outcome]]) -> None:
    """What each workflow is there to tell."""
    odd = {name: unlike(outcomes) for name, outcomes in done.items() if unlike(outcomes)}
    assert odd == {
        "config-audit": {"values_2": "failed", "normal_2": "skipped"},
        "repository-health": {"uncommitted": "skipped"},
    }
    values = {name: {task: value for task, (_, value) in tasks.items()} for name, tasks in done.items()}
    release, audit, incident = values["release-notes"], values["config-audit"], values["incident-review"]
    assert release["written_notes"]["text"] == release["commits"]["content"][0]["text"]
    assert release["announced"]["matches"][0]["text"] == "## 2.4.0"
    assert "line 4 column 3" in audit["values_2"]["content"][0]["text"]
    assert audit["secrets"]["count"] == 1
    assert "name: berth-planner" in audit["normal_3"]["text"]
    assert len(values["document-index"]["written_deprecations"]["text"].splitlines()) > 40
    assert [e["name"] for e in values["repository-health"]["reports"]["entries"]] == [
        "changes.diff",
        "open-work.md",
    ]
    assert values["standup-notes"]["written_agenda"]["text"].count("TODO") == 4
    assert values["licence-check"]["carried"]["count"] == 1
    assert values["licence-check"]["written_notice"]["text"].count("BSD-3-Clause") == 2
    assert "BREAKING" in values["changelog-digest"]["written_digest"]["text"]
    assert incident["in_tokyo"]["target"]["timezone"] == "Asia/Tokyo"
    assert incident["runbook"]["text"].startswith("# Operations")
    assert "severity: 2" in incident["written_review"]["text"]


async def test_the_permissions_name_every_tool_with_the_effect_its_server_declares(tmp_path: Path) -> None:
    world.build(tmp_path / "root")
    world.clone(tmp_path, tmp_path / "repository")
    async with connected(tmp_path) as clients:
        servers = await listed(clients)
    offered = {f"{server}:{tool.name}": tool.hints for server, s in servers.items() for tool in s.tools}
    assert {name for name in PERMISSIONS.tools if name.partition(":")[0] in servers} == set(offered)
    for name, hints in offered.items():
        assert (PERMISSIONS.tools[name].declared_effect == "read") is hints.read_only, name
        touched = PERMISSIONS.tools[name].touches
        assert touched is not None, name
        assert all(template.startswith(f"{name.partition(':')[0]}:") for template in touched), name


@pytest.mark.parametrize("tool", ["read_file", "list_dir", "search", "parse_json", "format"])
def test_the_tools_that_the_specification_calls_safe_may_run_early(tool: str) -> None:
    assert can_speculate(f"files:{tool}", {"path": "a"}, PERMISSIONS, None).allowed


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("github:push", {}),
        ("files:write_file", {"path": "a"}),
        ("files:delete_file", {"path": "a"}),
        ("http:request", {"method": "POST"}),
        ("http:request", {"method": "PUT"}),
        ("http:request", {"method": "DELETE"}),
        ("http:request", {}),
        ("time:get_current_time", {}),
        ("time:convert_time", {}),
        ("files:unheard_of", {}),
    ],
)
def test_what_writes_or_changes_by_itself_never_runs_early(tool: str, arguments: dict[str, Any]) -> None:
    assert not can_speculate(tool, arguments, PERMISSIONS, None).allowed


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_something_can_run_early_while_a_slow_task_still_runs(file: Path) -> None:
    """A safe task that waits for none of the slow tasks of the layer before its own."""
    workflow = load(file)
    graph = build(workflow)
    slow = {node.id for node in graph.nodes.values() if _is_slow(node, workflow.context)}
    early = [
        node.id
        for node in graph.nodes.values()
        if node.layer > 0
        and not node.conditions
        and can_speculate(node.tool, {}, PERMISSIONS, None).allowed
        and slow.intersection(graph.layers[node.layer - 1]) - node.depends_on
        and not slow & node.depends_on
    ]
    assert early


def _is_slow(node: Node, context: Mapping[str, Any]) -> bool:
    """Git commands, and searches through all 300 pages."""
    resolved = resolve_strictly(node.arguments, Values(context, {}))
    wide = isinstance(resolved, Resolved) and resolved.arguments.get("path") in {".", "docs"}
    return node.tool.startswith("git:") or (node.tool == "files:search" and wide)

"""`pml analyze`: what a program would do, before it does anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pml.streams.cli.output import Json, note, print_json, say_source, stdout_console
from pml.streams.printable import printable

if TYPE_CHECKING:
    from pml.processors.capabilities.provides import ToolSchemas
    from pml.schemas.structure import Structure


def analyze(
    file: Annotated[str, typer.Argument(help="A .py or .ts file, or `-` for standard input.")],
    *,
    language: Annotated[
        str | None, typer.Option("--language", help="python or typescript, where the name does not say it.")
    ] = None,
    schemas: Annotated[
        Path | None,
        typer.Option(
            "--schemas",
            help="JSON or YAML: by tool, `input_schema` and `output_schema`; shows who provides what.",
        ),
    ] = None,
    permissions: Annotated[
        Path | None,
        typer.Option(
            "--permissions",
            help="Shows whom its calls wait for; without it the project's file is read, if any.",
        ),
    ] = None,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Draw it in Mermaid's language.")] = False,
    json: Json = False,
) -> None:
    """Show what a program would do: its tool calls, branches and data, without running anything.

    A program that a DAG expresses runs as one (`pml submit`), with all that workflows have. What no DAG
    expresses, and what this release does not run yet, is listed with its line.

    Where there is a permissions file, its tools that a person is asked about before it begins are named.

    Examples: pml analyze job.py · pml analyze job.ts --json · pml analyze job.py --schemas tools.json
    """
    from pml.processors.capabilities.analysing import structure_of
    from pml.schemas.errors import ConfigurationError
    from pml.streams.cli.program_file import language_of
    from pml.streams.cli.workflow_file import read_text

    spoken = language_of(file, language)
    if spoken is None:
        raise ConfigurationError(f"{file} says no language: add --language python or --language typescript")
    structure = structure_of(read_text(file), spoken, _schemas(schemas))
    asking = _asking(structure, permissions)
    if json:
        print_json(_document(structure) | {"asks_person": asking})
        return
    _show(structure, mermaid, asking)


def _asking(structure: Structure, file: Path | None) -> dict[str, str] | None:
    """The tools that a person is asked about before it begins, and why; None where no file says so."""
    from pml.processors.speculation.guard import Refusal, grant
    from pml.streams.bridge.permissions_file import read_permissions
    from pml.streams.cli.session import load_settings

    file = file or load_settings().mcp_permissions
    if not file.exists():
        return None
    allowed = read_permissions(file)
    found = {tool: grant(tool, {}, allowed, None) for tool in structure.tools}
    return {tool: answer.message for tool, answer in found.items() if isinstance(answer, Refusal)}


def _schemas(path: Path | None) -> dict[str, ToolSchemas]:
    """The schemas of tools, by `server:name`: a mapping, or a list whose entries have a `name`."""
    from pml.schemas.errors import ConfigurationError
    from pml.streams.cli.workflow_file import read_text
    from pml.streams.yaml_text import NotYAML, read_json_or_yaml

    if path is None:
        return {}
    try:
        given = read_json_or_yaml(read_text(str(path)))
    except NotYAML:
        raise ConfigurationError(f"{path} is neither YAML nor JSON") from None
    tools = given.get("tools", given) if isinstance(given, dict) else given
    if isinstance(tools, list):
        named = [item for item in tools if isinstance(item, dict) and isinstance(item.get("name"), str)]
        tools = {item["name"]: item for item in named}
    if not isinstance(tools, dict) or not all(isinstance(item, dict) for item in tools.values()):
        raise ConfigurationError(f"{path} is no mapping of tools to their `input_schema` and `output_schema`")
    return {str(name): _tool_schemas(item) for name, item in tools.items()}


def _tool_schemas(given: dict[str, Any]) -> ToolSchemas:
    from pml.processors.capabilities.provides import ToolSchemas

    def schema(one: str, other: str) -> dict[str, Any] | None:
        found = given.get(one, given.get(other))
        return found if isinstance(found, dict) else None

    return ToolSchemas(schema("input_schema", "inputSchema"), schema("output_schema", "outputSchema"))


def _document(structure: Structure) -> dict[str, Any]:
    from pml.processors.capabilities.analysing import mode_of
    from pml.processors.capabilities.conversion import obstacles
    from pml.processors.capabilities.drawing import mermaid

    mode, reason = mode_of(structure)
    hindered = obstacles(structure)
    return structure.model_dump(mode="json", by_alias=True) | {
        "mode": mode,
        "reason": reason,
        "obstacles": hindered,
        "tools": structure.tools,
        "capabilities": structure.capabilities,
        "mermaid": mermaid(structure),
    }


def _show(structure: Structure, as_mermaid: bool, asking: dict[str, str] | None) -> None:
    from pml.processors.capabilities import drawing

    if as_mermaid:
        say_source(drawing.mermaid(structure))
        return
    console = stdout_console()
    for line in drawing.outline(structure).splitlines():
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
    provides = [edge for edge in structure.edges if edge.type == "provides"]
    for title, lines in {
        "provides": [f"{edge.source} → {edge.target}  {edge.coverage}" for edge in provides],
        "parameters": [_parameter(item.name, item.required, item.default) for item in structure.parameters],
        "result": [drawing.written(structure.result)] if structure.result is not None else [],
        "asks a person": list((asking or {}).values()),
        "unsupported": [f"line {item.line}: {item.reason}" for item in structure.unsupported],
    }.items():
        if lines:
            console.print(f"\n{title}", style="bold")
            for line in lines:
                console.print(f"  {printable(line)}", markup=False, highlight=False, soft_wrap=True)
    note(f"\n{_verdict(structure)}")


def _verdict(structure: Structure) -> str:
    """How it runs, and why where that is in the sandbox."""
    from pml.processors.capabilities.conversion import obstacles

    hindered = obstacles(structure)
    if not hindered:
        return f"runs as a DAG of {_count(structure)}"
    return f"runs in the sandbox: {'; '.join(hindered)}"


def _count(structure: Structure) -> str:
    return f"{len(structure.nodes)} node" + ("" if len(structure.nodes) == 1 else "s")


def _parameter(name: str, required: bool, default: Any) -> str:
    import orjson

    return name if required else f"{name} = {orjson.dumps(default).decode()}"

"""Writing one entry into `mcp-permissions.yaml` and leaving everything else, comments too, as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import yaml

from pml.schemas.errors import ConfigurationError
from pml.streams.bridge.permissions_file import checked_permissions
from pml.streams.local.stack import write_whole
from pml.streams.yaml_text import NotYAML, read_yaml

NEW_FILE = (
    "# What may run, and what may run early. A tool that is not named here asks a person first.\nversion: 1\n"
)
INDENT = "  "


def approve(path: Path, pattern: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Put these fields into the entry of a tool or glob, making file and entry where they are missing.

    Returns the entry as it is now.

    Raises:
        ConfigurationError: the file is wrong, or is written so that it cannot be edited.
    """
    text = path.read_text(encoding="utf-8") if path.exists() else NEW_FILE
    before = _parsed(path, text)
    entry = {**(before.get("tools", {})).get(pattern, {}), **changes}
    after = with_entry(text, pattern, entry)
    wanted = {**before, "tools": {**(before.get("tools", {})), pattern: entry}}
    if _parsed(path, after) != wanted:
        raise ConfigurationError(f"{path} cannot be edited; add this yourself: {_line(pattern, entry)}")
    _write(path.resolve(), after)
    return entry


def _write(path: Path, text: str) -> None:
    mode = path.stat().st_mode if path.exists() else 0o644
    write_whole(path, text.encode())
    path.chmod(mode)


def with_entry(text: str, pattern: str, entry: dict[str, Any]) -> str:
    """The text of a permissions file with this entry put in or replaced."""
    root: Any = yaml.compose(text)
    tools = _child(root, "tools")
    if not isinstance(tools, yaml.MappingNode):
        return _without_tools(text, root, tools, pattern, entry)
    found = next(((key, value) for key, value in tools.value if key.value == pattern), None)
    if found is not None:
        key, value = found
        return text[: key.start_mark.index] + _line(pattern, entry, root) + text[_end(value) :]
    if not tools.value and not root.flow_style:
        return text[: tools.start_mark.index].rstrip() + _block(pattern, entry) + text[_end(tools) :]
    if tools.flow_style:
        place = _end(tools.value[-1][1]) if tools.value else tools.start_mark.index + 1
        comma = ", " if tools.value else ""
        return f"{text[:place]}{comma}{_line(pattern, entry, root)}{text[place:]}"
    return _after_last(text, tools, pattern, entry)


def _without_tools(text: str, root: Any, tools: Any, pattern: str, entry: dict[str, Any]) -> str:
    if tools is not None:  # `tools:` with nothing behind it
        return text[: tools.start_mark.index].rstrip() + _block(pattern, entry) + text[_end(tools) :]
    if root is not None and root.flow_style:
        place = text.rindex("}")
        comma = ", " if root.value else ""
        return f'{text[:place]}{comma}"tools": {{{_line(pattern, entry, root)}}}{text[place:]}'
    return f"{text.rstrip()}\ntools:{_block(pattern, entry)}\n".lstrip()


def _after_last(text: str, tools: yaml.MappingNode, pattern: str, entry: dict[str, Any]) -> str:
    """A new line behind the last entry, whose comment on the same line stays with it."""
    place = text.find("\n", _end(tools.value[-1][1]))
    place = len(text) if place < 0 else place
    indent = " " * tools.value[0][0].start_mark.column
    return f"{text[:place]}\n{indent}{_line(pattern, entry)}{text[place:] or chr(10)}"


def _block(pattern: str, entry: dict[str, Any]) -> str:
    return f"\n{INDENT}{_line(pattern, entry)}"


def _line(pattern: str, entry: dict[str, Any], root: Any = None) -> str:
    """The entry in one line: YAML's flow style, or JSON where the file is JSON."""
    key = orjson.dumps(pattern).decode()
    if root is not None and root.flow_style:
        return f"{key}: {orjson.dumps(entry).decode()}"
    flow = yaml.safe_dump(
        entry, default_flow_style=True, sort_keys=False, width=1_000_000, allow_unicode=True
    )
    return f"{key}: {flow.strip()}"


def _child(node: Any, name: str) -> Any:
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((value for key, value in pairs if key.value == name), None)


def _end(node: yaml.Node) -> int:
    """Where a node's own text ends; the mark of a block lies behind the comments that follow it."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value:
        return _end(node.value[-1][1])
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return _end(node.value[-1])
    return int(node.end_mark.index)


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        content = read_yaml(text) or {}
    except NotYAML:
        raise ConfigurationError(f"{path} is no valid YAML") from None
    checked_permissions(path, _without_empty(content))
    assert isinstance(content, dict)
    return _without_empty(content)


def _without_empty(content: Any) -> Any:
    """`tools:` with nothing behind it is how people begin such a file."""
    return {k: v for k, v in content.items() if v is not None} if isinstance(content, dict) else content

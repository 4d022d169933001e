"""What a permissions file might say of tools that nobody has looked at: from hints and names alone. Pure.

Hints are what a server says of itself, and a name is only a name: so everything is commented out, with its
reason, and a person decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from pml.schemas.catalog import ServerTools, Tool, ToolHints
from pml.schemas.permissions import PermissionFile


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


READS = _words(
    "browse calculate check compare convert count current describe diff fetch find format get glob grep head "
    "inspect list lookup now parse peek preview query read retrieve scan search select show stat status tail "
    "time tree validate view"
)
WRITES = _words(
    "add append apply archive assign book buy call cancel checkout close commit copy create deploy disable "
    "edit enable execute fork import insert install invite kill make merge mkdir modify move open order "
    "patch pay post publish push put rename replace reply reset restart restore run save schedule send set "
    "share start stop store submit subscribe sync transfer trigger update upload upsert write"
)
DESTROYS = _words("clear delete destroy drop erase force purge remove rm truncate uninstall wipe")
CHANGING = _words("clock current now random time today uuid weather")
PATHS = ("path", "file", "file_path", "filepath", "repo_path", "directory", "folder", "uri", "url")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
LINE_MAX = 1_000_000
HEAD = """\
# Proposed by `pml tools draft` from what servers say of their tools and from names alone. Nothing of it holds
# yet: look at each line, take its first # away, and put it into mcp-permissions.yaml below `tools:`.
# approval: auto runs without asking, hil asks a person for each call; scope readonly may also run early.
"""


@dataclass(frozen=True, slots=True)
class Proposal:
    """An entry for a tool, and why."""

    tool: str
    entry: dict[str, Any]
    reason: str

    def line(self) -> str:
        """The entry, commented out, with its reason."""
        tool = yaml.safe_dump(self.tool, default_style='"', width=LINE_MAX).strip()
        entry = yaml.safe_dump(self.entry, default_flow_style=True, sort_keys=False, width=LINE_MAX).strip()
        return f"  # {tool}: {entry}  # {_printable(self.reason)}"


def proposals(servers: Mapping[str, ServerTools], permissions: PermissionFile) -> list[Proposal]:
    """A proposal for each tool that no entry names."""
    tools = ((f"{name}:{tool.name}", tool) for name in sorted(servers) for tool in servers[name].tools)
    return [proposal(name, tool) for name, tool in tools if permissions.find(name) is None]


def proposal(name: str, tool: Tool) -> Proposal:
    """What fits a tool, as far as one can tell without trying it."""
    words = frozenset(word.lower() for word in _WORD.findall(tool.name))
    entry, reason = _judged(tool.hints, words)
    if tool.hints.open_world:
        entry |= {"open_world": True}
        reason += ", and that it reaches out of this machine"
    if entry["approval"] == "auto" and words & CHANGING:
        entry |= {"cacheable": False}
        reason += f"; {_named(words, CHANGING)} changes by itself"
    touched = _touched(name, tool)
    return Proposal(name, entry | ({"touches": [touched]} if touched else {}), reason)


def draft_text(found: Iterable[Proposal], absent: Mapping[str, str]) -> str:
    """The whole draft; servers that could not be asked are named with the reason."""
    lines = [item.line() for item in found]
    lines += [f"  # {name} could not be asked: {_printable(why)}" for name, why in absent.items()]
    return f"{HEAD}version: 1\ntools:\n" + "".join(f"{line}\n" for line in lines)


def _judged(hints: ToolHints, words: frozenset[str]) -> tuple[dict[str, Any], str]:
    """Scope, approval and effect; where hint and name do not agree, the stricter one."""
    if words & DESTROYS:
        return _asks(), f"its name says that it destroys ({_named(words, DESTROYS)})"
    if hints.destructive and hints.read_only is not True:
        return _asks(), "its server says that it may destroy"
    if hints.read_only is True:
        if words & WRITES:
            return _asks(), f"its server says that it only reads, its name does not ({_named(words, WRITES)})"
        return _reads(), "its server says that it only reads"
    if hints.read_only is False:
        return _asks(), "its server says that it changes something"
    if words & WRITES:
        return _asks(), f"its name says that it changes something ({_named(words, WRITES)})"
    if words & READS:
        return _reads(), f"its name says that it reads ({_named(words, READS)}), its server nothing"
    return _asks("admin"), "nothing says what it does"


def _reads() -> dict[str, Any]:
    return {"scope": "readonly", "approval": "auto"}


def _asks(scope: str = "filesystem") -> dict[str, Any]:
    return {"scope": scope, "approval": "hil", "effect": "write"}


def _named(words: frozenset[str], known: frozenset[str]) -> str:
    return ", ".join(sorted(words & known))


def _touched(name: str, tool: Tool) -> str | None:
    """The path of a required argument that looks like one; without it a call touches its whole server."""
    required = tool.input_schema.get("required")
    names = [item for item in PATHS if isinstance(required, list) and item in required]
    return f"{name.partition(':')[0]}:{{{names[0]}}}" if names else None


def _printable(text: str) -> str:
    """The text in one line, as YAML takes it."""
    return "".join(letter if letter.isprintable() else " " for letter in text)

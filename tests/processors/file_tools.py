"""Tools over a tiny world of files, and random workflows that use them.

A tool is a pure function of the files at the moment it runs, so that a test knows what it would have
answered at any other moment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

PATHS = ("a.md", "b.md", "docs/c.md", "docs/d.md")
MISSING = "gone.md"


class ToolFailed(Exception):
    """The tool answers with an error."""


@dataclass
class Files:
    """The files, and every state they were in."""

    texts: dict[str, str] = field(default_factory=lambda: {path: f"{path} 0" for path in PATHS})
    history: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.history.append(dict(self.texts))

    def run(self, tool: str, arguments: dict[str, Any], texts: dict[str, str] | None = None) -> Any:
        """What a tool answers now, or answered when the files were as in `texts`.

        Raises:
            ToolFailed: the file does not exist.
        """
        name, path = tool.partition(":")[2], arguments.get("path", "")
        if name == "write_file":
            self.texts[path] = str(arguments.get("text"))
            self.history.append(dict(self.texts))
            return {"written": path}
        return answer(name, path, arguments, self.texts if texts is None else texts)


def answer(name: str, path: str, arguments: dict[str, Any], texts: dict[str, str]) -> dict[str, Any]:
    """What a reading tool says of these files."""
    if name == "read_file":
        if path not in texts:
            raise ToolFailed(path)
        return {"text": texts[path], "size": len(texts[path])}
    if name == "list_dir":
        return {"names": sorted(file for file in texts if file.startswith(path)), "first": path}
    if name == "search":
        return {"found": sorted(texts.items())}
    return {"parsed": arguments.get("text"), "first": PATHS[0]}


def random_workflow(random: Random, conflicts: bool = True) -> dict[str, Any]:
    """Up to five layers of up to four tasks.

    Args:
        conflicts: whether tasks of one layer may touch the same file, so that order decides what they see.
    """
    tasks: list[dict[str, Any]] = []
    before: list[str] = []
    decisions: list[dict[str, Any]] = []
    for _ in range(random.randint(1, 5)):
        layer = _layer(random, before, tasks, conflicts)
        if before and random.random() < 0.25:
            name = f"d{len(decisions) + 1}"
            read = random.choice(before)
            decisions.append({"id": name, "expression": f"{read}.size > 5"})
            layer[0]["condition"] = {"node": name, "outcome": random.choice(["true", "false"])}
        tasks.extend(layer)
        before = [task["id"] for task in layer]
    options = {"timeout_s": random.choice([40, 300])}
    return {"tasks": tasks, "decisions": decisions, "options": options}


def _layer(
    random: Random, before: list[str], earlier: list[dict[str, Any]], conflicts: bool
) -> list[dict[str, Any]]:
    free = list(PATHS)
    layer: list[dict[str, Any]] = []
    written = False
    for number in range(random.randint(1, 4)):
        tool = random.choice(["read_file", "read_file", "list_dir", "search", "parse", "parse", "write_file"])
        if tool == "write_file" and not conflicts:
            # Alone with its file, and nothing of its layer looks at the whole folder.
            written = True
        path = random.choice(free)
        if not conflicts:
            free.remove(path)
        task: dict[str, Any] = {
            "id": f"n{len(earlier) + number + 1}",
            "tool": f"files:{tool}",
            "arguments": _arguments(random, tool, path, earlier),
            "safe_to_fail": random.random() < 0.2,
        }
        if before:
            task["depends_on"] = random.sample(before, random.randint(1, len(before)))
        layer.append(task)
    if written:
        layer = [task for task in layer if task["tool"] not in {"files:search", "files:list_dir"}]
    return layer


def _arguments(random: Random, tool: str, path: str, earlier: list[dict[str, Any]]) -> dict[str, Any]:
    """Often taken from a task of one of the last layers, so that deeper calls can run early too."""
    gives = {"files:read_file": "text", "files:parse": "parsed"}
    readable = [f"{task['id']}.{gives[task['tool']]}" for task in earlier[-6:] if task["tool"] in gives]
    text: Any = f"text {random.randint(0, 3)}"
    if readable and random.random() < 0.7:
        text = {"type": "reference", "expression": random.choice(readable)}
    if tool == "read_file":
        return {"path": MISSING if random.random() < 0.1 else path}
    if tool == "list_dir":
        return {"path": path.partition("/")[0]}
    if tool == "search":
        return {}
    return {"text": text} | ({"path": path} if tool == "write_file" else {})

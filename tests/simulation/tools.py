"""The tools of the simulation: what they really do, and what an operator says of them.

Only here both is known: the guard under test reads the permissions, the checks compare with the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from random import Random
from typing import Any, Literal

from pml.schemas.catalog import CatalogRecord, PermissionRecord, ServerTools, Tool, ToolHints
from pml.schemas.permissions import PermissionFile
from tests.simulation.world import Change, World

Kind = Literal["read", "list", "write", "bump", "pure", "clock", "either", "wrote"]
PATHS = ("a", "b", "docs/c", "docs/d", "docs/deep/e")
MISSING = "gone"
# Longer than a call hangs: a write may be at work for so long after its caller is gone.
AT_WORK_S = 45


NO_HINTS = ToolHints()


class ToolFailed(Exception):
    """The tool answers with an error."""


@dataclass(frozen=True)
class ToolSpec:
    """One tool: its truth, and its entry in the permissions file (None: nobody allowed it).

    `fields` are names that its result has beside its own; `root` is where its paths begin, or all that it
    touches where that is `fixed`.
    """

    name: str
    kind: Kind
    root: str
    entry: Mapping[str, Any] | None
    hints: ToolHints = NO_HINTS
    open_world: bool = False
    required: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    version: int = 1
    fixed: bool = False

    @property
    def server(self) -> str:
        """Its server."""
        return self.name.partition(":")[0]

    @property
    def definition(self) -> str:
        """The hash that its server's list would give."""
        return f"{self.name}-{self.version}"

    def writes(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a call with these arguments changes the world."""
        if self.kind == "either":
            return arguments.get("method") != "GET"
        return self.kind in {"write", "bump"}

    def touches(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """What a call really looks at or changes."""
        if self.kind in {"pure", "clock"}:
            return ()
        path = None if self.fixed else arguments.get("path")
        return (f"{self.root}{path}" if isinstance(path, str) and path else self.root,)


@dataclass
class Toolbox:
    """All tools; operators and servers change what is said of them while a seed plays."""

    specs: dict[str, ToolSpec]
    trusted: frozenset[str] = frozenset()
    concurrency: dict[str, int] = field(default_factory=dict)
    unavailable: set[str] = field(default_factory=set)
    _permissions: PermissionFile | None = None
    _servers: dict[str, ServerTools] = field(default_factory=dict)

    def permissions(self) -> PermissionFile:
        """The permissions file as it is now."""
        if self._permissions is None:
            entries = {name: spec.entry for name, spec in self.specs.items() if spec.entry is not None}
            self._permissions = PermissionFile.model_validate({"tools": entries})
        return self._permissions

    def servers(self) -> dict[str, ServerTools]:
        """What the bridge lists."""
        if not self._servers:
            names = sorted({spec.server for spec in self.specs.values()})
            self._servers = {name: self._server(name) for name in names}
        return self._servers

    def records(self) -> list[CatalogRecord]:
        """The catalog as it should be."""
        permissions = PermissionRecord(file=self.permissions(), hash="h")
        records = [CatalogRecord(kind="tool", id=name, data=data) for name, data in self.servers().items()]
        return [*records, CatalogRecord(kind="permission", id="file", data=permissions)]

    def change(self, name: str, **fields: Any) -> None:
        """Something is said otherwise from now on."""
        self.specs[name] = replace(self.specs[name], **fields)
        self._permissions, self._servers = None, {}

    def add(self, spec: ToolSpec) -> None:
        """One more tool."""
        self.specs[spec.name] = spec
        self._permissions, self._servers = None, {}

    def switch_server(self, name: str) -> None:
        """A server ends, or is back."""
        self.unavailable ^= {name}
        self._servers = {}

    def _server(self, name: str) -> ServerTools:
        if name in self.unavailable:
            return ServerTools(server=name, status="unavailable", error="it ended")
        tools = tuple(_listed(spec) for spec in self.specs.values() if spec.server == name)
        return ServerTools(
            server=name,
            status="listed",
            trusted=name in self.trusted,
            concurrency=self.concurrency.get(name, 4),
            tools=tools,
        )


def _listed(spec: ToolSpec) -> Tool:
    schema: dict[str, Any] = {"type": "object", "required": list(spec.required)} if spec.required else {}
    return Tool(
        name=spec.name.partition(":")[2], input_schema=schema, hints=spec.hints, definition=spec.definition
    )


def answer(spec: ToolSpec, arguments: Mapping[str, Any], values: Mapping[str, str], tick: int) -> Any:
    """What a reading tool says of these values.

    Raises:
        ToolFailed: there is nothing at this path.
    """
    if spec.kind == "clock":
        return _shaped(spec, arguments, {"value": str(tick)})
    if spec.kind == "pure":
        return _shaped(spec, arguments, {"value": digest(sorted(arguments.items()))})
    (touched,) = spec.touches(arguments)
    if spec.kind == "list":
        found = World(dict(values)).under(touched)
        return _shaped(spec, arguments, {"value": digest(found), "names": sorted(found)})
    if spec.kind == "wrote":
        found = values.get(touched) == written(arguments)
        return _shaped(spec, arguments, {"value": str(found), "found": found})
    if arguments.get("path") == MISSING:
        raise ToolFailed(f"no such file: {touched}")
    return _shaped(spec, arguments, {"value": values.get(touched, "nothing")})


def effect(
    spec: ToolSpec, arguments: Mapping[str, Any], world: World, *, at_s: float, who: str, call_id: str
) -> Any:
    """Do what a writing tool does, and say so."""
    (touched,) = spec.touches(arguments)
    before = world.values.get(touched, "")
    value = f"{before}+" if spec.kind == "bump" else written(arguments)
    world.write(Change(at_s, touched, value, who, call_id))
    return _shaped(spec, arguments, {"value": value})


def written(arguments: Mapping[str, Any]) -> str:
    """What lies there after a write with these arguments."""
    return digest([arguments.get("path"), arguments.get("text")])[:8]


def _shaped(spec: ToolSpec, arguments: Mapping[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """Names and numbers that later tasks and decisions may read."""
    value = result["value"]
    number = int(digest(value), 16) % 10
    made = {"size": number, "first": PATHS[number % len(PATHS)], "kind": "even" if number % 2 == 0 else "odd"}
    return {**result, **made, **{name: f"{name}-{digest([name, value])[:6]}" for name in spec.fields}}


def digest(value: Any) -> str:
    """A short text that tells values apart."""
    return blake2b(repr(value).encode(), digest_size=8).hexdigest()


def usual_tools(random: Random) -> Toolbox:
    """Tools of every sort, with entries of every sort that an operator might write."""
    specs = [spec for make in (_files, _store, _counters, _rest) for spec in make(random)]
    concurrency = {spec.server: random.choice([1, 2, 4, 8]) for spec in specs}
    return Toolbox({spec.name: spec for spec in specs}, frozenset({"trusted"}), concurrency)


Maker = Callable[[Random], list[ToolSpec]]


def _touches(random: Random, *choices: tuple[str, ...] | None) -> dict[str, Any]:
    chosen = random.choice(choices)
    return {} if chosen is None else {"touches": chosen}


def _verified(server: str) -> dict[str, Any]:
    """What tells whether a write of a server happened."""
    arguments = {"path": "{path}", "text": "{text}"}
    rule = {"tool": f"{server}:wrote", "arguments": arguments, "done": "result.found", "after_s": AT_WORK_S}
    return {"verify": rule}


def _wrote(server: str) -> ToolSpec:
    """Whether there is what a write with these arguments leaves; no workflow asks for it."""
    entry = {"scope": "readonly", "approval": "auto", "touches": (f"{server}:{{path}}",)}
    return ToolSpec(f"{server}:wrote", "wrote", f"{server}:", entry)


def _files(random: Random) -> list[ToolSpec]:
    exact, folder = ("files:{path}",), ("files:",)
    read = {"scope": "readonly", "approval": "auto", "ttl_s": random.choice([1.0, 3.0, 60.0])}
    write = {"scope": "filesystem", "approval": "auto"} | random.choice(
        [{}, {"idempotent": True, "retryable": {"attempts": 2, "backoff_ms": 200}}]
    )
    again = random.choice([{}, {"retryable": {"attempts": 2, "backoff_ms": 100}}])
    return [
        ToolSpec("files:read", "read", "files:", read | again | _touches(random, exact, exact, None)),
        ToolSpec("files:list", "list", "files:", read | {"touches": exact}),
        ToolSpec(
            "files:write",
            "write",
            "files:",
            write | _verified("files") | _touches(random, exact, exact, folder),
        ),
        _wrote("files"),
        ToolSpec("files:remove", "write", "files:", {"scope": "filesystem", "approval": "hil"}),
        ToolSpec("files:nobody", "read", "files:", None),
        ToolSpec("files:private", "read", "files:", {"scope": "readonly", "approval": "hil"}),
    ]


def _store(random: Random) -> list[ToolSpec]:
    exact = ("store:{path}",)
    read = {"scope": "minimal", "approval": "auto", "touches": exact}
    write = {"scope": "admin", "approval": "auto", "effect": "write", "touches": exact}
    get = {"scope": "network-api", "approval": "auto", "effect": "read", "when": {"method": ["GET"]}}
    return [
        ToolSpec("store:get", "read", "store:", read, required=("path",)),
        ToolSpec("store:put", "write", "store:", write | _verified("store")),
        _wrote("store"),
        ToolSpec("store:request", "either", "store:", get | {"open_world": False, "touches": exact}),
        # Its entry says that it reads; its server says that it does not, which narrows.
        ToolSpec("store:sly", "write", "store:", read, hints=ToolHints(read_only=False)),
    ]


def _counters(random: Random) -> list[ToolSpec]:
    write = {"scope": "admin", "approval": "auto", "touches": ("counters:{path}",)}
    read = {"scope": "readonly", "approval": "auto", "touches": ("counters:{path}",)}
    shared = {"scope": "readonly", "approval": "auto", "shared": True}
    return [
        ToolSpec("counters:bump", "bump", "counters:", write),
        ToolSpec("counters:read", "read", "counters:", read),
        ToolSpec("counters:board", "list", "counters:", shared),
    ]


def _rest(random: Random) -> list[ToolSpec]:
    web = {"scope": "network-api", "approval": "auto", "effect": "read", "touches": ()}
    pure = {"scope": "minimal", "approval": "auto", "touches": ()}
    trusted = {"scope": "filesystem", "approval": "auto", "touches": ("trusted:{path}",)}
    return [
        ToolSpec("web:fetch", "pure", "web:", web, open_world=True),
        ToolSpec("text:parse", "pure", "text:", pure),
        ToolSpec("time:now", "clock", "time:", pure | {"cacheable": False}),
        ToolSpec("trusted:look", "read", "trusted:", trusted, hints=ToolHints(read_only=True)),
        ToolSpec(
            "trusted:change",
            "write",
            "trusted:",
            trusted | _verified("trusted"),
            hints=ToolHints(read_only=False),
        ),
        _wrote("trusted"),
    ]

"""Programs that are no DAG, without a sandbox: those of the simulation are known, and Python runs them."""

from __future__ import annotations

import ast
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from pml.processors.sandboxing.python_source import FIELD, GATHER, prepared_python
from pml.streams.sandbox.programs import Earlier, Results, Said, Source

_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class Failed(Exception):
    """A call failed, as its program sees it."""


@dataclass
class _Calls:
    """What a program waits for."""

    made: list[_Call]
    together: bool

    def __await__(self) -> Generator[list[_Call], Results, Any]:
        results = yield self.made
        values = [_value(result) for result in results]
        return values if self.together else values[0]


@dataclass
class _Call:
    """A call of a `tool` or of a `capability`."""

    kind: str
    name: str
    arguments: dict[str, Any]

    @property
    def told(self) -> dict[str, Any]:
        """As a program says it."""
        return {self.kind: self.name, "arguments": self.arguments}

    def __await__(self) -> Generator[list[_Call], Results, Any]:
        return _Calls([self], together=False).__await__()


class _Tools:
    """`mcp`, and a server in it."""

    def __init__(self, server: str | None = None) -> None:
        self._server = server

    def __getattr__(self, name: str) -> Any:
        if self._server is None:
            return _Tools(name)
        return lambda **given: _Call("tool", f"{self._server}:{name}", given)


class _Capabilities:
    """`capabilities`."""

    def __getattr__(self, name: str) -> Any:
        return lambda **given: _Call("capability", name, given)


class Interpreted:
    """In the place of the programs of a bridge: each step is made from the beginning."""

    async def step(
        self,
        name: str,
        taken: tuple[Any, ...],
        newest: Callable[[], Awaitable[Results]],
        again: Callable[[], Awaitable[tuple[Source, Sequence[Earlier]]]],
    ) -> Said:
        """What a program says after its earlier steps."""
        return said(*await again())

    async def tend(self) -> None:
        """Nothing stands."""

    async def close(self) -> None:
        """Nothing runs."""


def said(source: Source, earlier: Sequence[Earlier]) -> Said:
    """What a program says after these steps."""
    text = prepared_python(source.program.source, source.context).code
    given = {"args": source.context, "mcp": _Tools(), "capabilities": _Capabilities()}
    names = {**given, FIELD: _field, GATHER: _gather}
    begun = eval(compile(text, "<program>", "exec", _FLAGS), names)
    try:
        calls: list[_Call] = begun.send(None)
        for step in earlier:
            asked = [call.told for call in calls]
            assert asked == step.calls, "a program asks for something else than the first time"
            calls = begun.send(step.results)
    except StopIteration:
        return {"value": None}
    except Failed as error:
        return {"error": {"code": "PROGRAM_ERROR", "message": str(error)}}
    except (KeyError, TypeError) as error:
        return {"error": {"code": "PROGRAM_ERROR", "message": repr(error)}}
    begun.close()
    return {"calls": [call.told for call in calls]}


def _field(value: Any, name: str) -> Any:
    return value[name] if isinstance(value, dict) else getattr(value, name)


def _gather(*calls: _Call) -> _Calls:
    return _Calls(list(calls), together=True)


def _value(result: dict[str, Any]) -> Any:
    if "error" in result:
        raise Failed(f"{result['error']['code']}: {result['error']['message']}")
    return result["value"]

"""The process that runs one Python program in Monty; a script of its own, started without PML.

Monty runs the program in a worker process again; this one answers for it, by lines on its input and output.
A line out is the word of its start, a space, and JSON: `calls` that wait, or a `value` or an `error` at the
end. A line in has the `results` of those calls, in their order.
"""

from __future__ import annotations

import ctypes
import json
import math
import resource
import signal
import sys
import uuid
from typing import Any

import pydantic_monty as monty

CALLS_MAX = 200
"""As many as a layer of a run may have; more wait for the next line."""
DEPTH_MAX = 64
INTEGER_MAX = 2**63
RECURSION_MAX = 500
SUSPENSIONS_MAX = 1_000_000
MESSAGE_MAX = 2_000
# What the worker itself takes besides the values of a program.
WORKER_BYTES = 256 * 2**20
PRELUDE = """
import asyncio

def _pml_field(value, name):
    if isinstance(value, dict) and name in value:
        return value[name]
    if isinstance(value, dict) and not hasattr(value, name):
        raise KeyError(name)
    return getattr(value, name)

async def _pml_settled(begun):
    try:
        return await begun
    except Exception as error:
        return error

async def _pml_gather(*begun, return_exceptions=False):
    if return_exceptions:
        begun = [_pml_settled(each) for each in begun]
    return await asyncio.gather(*begun)

def _pml_begin(begun):
    return begun

def _pml_copy(value):
    if isinstance(value, dict):
        return {key: _pml_copy(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_pml_copy(item) for item in value]
    return value

def _pml_arguments(*given, **named):
    if len(given) == 1 and isinstance(given[0], dict) and not named:
        return _pml_copy(given[0])
    if given:
        raise TypeError("a capability takes named arguments")
    return _pml_copy(named)

def _pml_taken(args, names):
    return {name: args[name] for name in names if name in args}
"""
KINDS = {"TIMEOUT": "TimeoutError", "PERMISSION": "PermissionError", "VALIDATION": "ValueError"}
"""What an error of a call is in the program, by its type; else a RuntimeError."""


class Refused(Exception):
    """The program did what ends it."""

    def __init__(self, code: str, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.told = {"code": code, "message": message[:MESSAGE_MAX], "line": line}


class Tools:
    """What `mcp` and `mcp.server` are in the program: a place to look for names."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.wrapped = monty.ClassInstance(self, id=uuid.uuid5(uuid.NAMESPACE_OID, path))


class Host:
    """Runs one program from its beginning to its end, and says where it waits."""

    def __init__(self, start: dict[str, Any]) -> None:
        self.word: str = start["word"]
        self.source: str = start["source"]
        self.lines: dict[int, int] = {int(new): old for new, old in start["lines"].items()}
        self.context: dict[str, Any] = start["context"]
        self.bytes_max: int = start["bytes_max"]
        self.tools: dict[uuid.UUID, Tools] = {}
        self.calls: list[tuple[int, dict[str, Any]]] = []
        self.settled: dict[int, Any] = {}

    def run(self, session: monty.MontySession) -> None:
        """Say what the program comes to; raises Refused where it ends with an error."""
        try:
            session.feed_run(PRELUDE)
            snapshot: Any = session.feed_start(
                self.source, inputs=self.inputs(), print_callback=lambda stream, text: None
            )
            while not isinstance(snapshot, monty.MontyComplete):
                snapshot = self.answer(snapshot)
            value = plain(snapshot.output, "the result")
        except monty.MontyError as error:
            raise self.failure(error) from None
        while self.calls:
            self.exchange()
        self.say("value", value)

    def inputs(self) -> dict[str, Any]:
        """What the caller gives, by name; `args` is everything."""
        own = {"mcp", "capabilities"}
        named = {
            name: value
            for name, value in self.context.items()
            if name.isidentifier() and name not in own and not name.startswith("_")
        }
        return {**named, "args": self.context}

    def answer(self, snapshot: Any) -> Any:
        """Go on to where the program stops next."""
        if isinstance(snapshot, monty.FutureSnapshot):
            return self.resolve(snapshot)
        if isinstance(snapshot, monty.NameLookupSnapshot):
            return self.look_up(snapshot)
        if snapshot.is_os_function:
            name = snapshot.function_name
            told = f"`{name}` is not to be had in the sandbox, where every step is repeatable; call a tool"
            return snapshot.resume({"exc_type": "PermissionError", "message": told})
        return self.call(snapshot)

    def look_up(self, snapshot: Any) -> Any:
        """`mcp`, what is in it, or a name that nobody gave."""
        name = snapshot.variable_name
        owner = self.tools.get(snapshot.object_id)
        if owner is None and name in {"mcp", "capabilities"}:
            return snapshot.resume(value=self.tools_at(name))
        if owner is None:
            return snapshot.resume()
        if owner.path == "mcp":
            return snapshot.resume(value=self.tools_at(f"mcp.{name}"))
        return snapshot.resume(value=function(f"{owner.path}:{name}"))

    def tools_at(self, path: str) -> Any:
        """The same object whenever it is asked for."""
        known = next((item for item in self.tools.values() if item.path == path), None)
        found = known or Tools(path)
        self.tools[found.wrapped.id] = found
        return found.wrapped

    def call(self, snapshot: Any) -> Any:
        """A tool or capability is called: the program goes on until it needs what that gives."""
        owner = self.tools.get(snapshot.object_id)
        path = snapshot.function_name if owner is None else f"{owner.path}:{snapshot.function_name}"
        place, _, name = path.partition(":")
        if not name or not (place == "capabilities" or place.startswith("mcp.")):
            return snapshot.resume({"exc_type": "TypeError", "message": f"{path} is no tool"})
        called = {"capability": name} if place == "capabilities" else {"tool": path.removeprefix("mcp.")}
        try:
            arguments = arguments_of(path.removeprefix("mcp."), snapshot.args, snapshot.kwargs)
        except Refused as error:
            return snapshot.resume({"exc_type": "TypeError", "message": str(error)})
        self.calls.append((snapshot.call_id, {**called, "arguments": arguments}))
        return snapshot.resume({"future": ...})

    def resolve(self, snapshot: Any) -> Any:
        """The program waits: give it what has come, or say what it waits for.

        Monty names what is awaited in another order each time; only sorted it is the same in each.
        """
        while True:
            wanted = [name for name in sorted(snapshot.pending_call_ids) if name in self.settled]
            if wanted:
                return snapshot.resume({name: self.settled.pop(name) for name in wanted})
            if not self.calls:
                raise Refused("PROGRAM_ERROR", "the program waits for what never comes")
            self.exchange()

    def exchange(self) -> None:
        """Say which calls wait, and hear what came of them."""
        handed, self.calls = self.calls[:CALLS_MAX], self.calls[CALLS_MAX:]
        self.say("calls", [call for _, call in handed])
        for (name, _), result in zip(handed, hear()["results"], strict=True):
            self.settled[name] = given(result)

    def failure(self, error: monty.MontyError) -> Refused:
        """What ended the program, and on which line of it."""
        if isinstance(error, monty.MontyCrashedError):
            code = "SANDBOX_TIMEOUT" if error.timed_out else "SANDBOX_DIED"
            return Refused(code, "the program took all memory of its sandbox, or broke its interpreter")
        if not isinstance(error, monty.MontyRuntimeError | monty.MontySyntaxError):
            return Refused("PROGRAM_ERROR", str(error))
        lines = [frame.line for frame in error.traceback() if frame.filename == "<python-input-1>"]
        line = self.lines.get(lines[-1], lines[-1]) if lines else None
        inner, told = error.exception(), error.display("type-msg")
        if isinstance(inner, TimeoutError) and "time limit exceeded" in told:
            return Refused("SANDBOX_TIMEOUT", "the program computed for longer than a step may", line)
        if isinstance(inner, MemoryError):
            return Refused("SANDBOX_MEMORY", f"the program takes too much memory: {told}", line)
        return Refused("PROGRAM_ERROR", told, line)

    def say(self, kind: str, value: Any) -> None:
        """One line out."""
        text = json.dumps({kind: value}, allow_nan=False)
        if len(text) > self.bytes_max:
            what = "its result has" if kind == "value" else "the calls of one step have"
            raise Refused("OUTPUT_TOO_LARGE", f"{what} {len(text)} bytes (at most {self.bytes_max})")
        write(f"{self.word} {text}\n")


def function(name: str) -> Any:
    """A tool that is kept in a variable; the program calls it by its name."""

    def tool(*_: Any, **__: Any) -> None:
        raise NotImplementedError

    tool.__name__ = tool.__qualname__ = name
    return tool


def arguments_of(tool: str, positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Named arguments, or one dictionary of them."""
    if len(positional) == 1 and isinstance(positional[0], dict) and not named:
        return plain(positional[0], f"an argument of {tool}")
    if positional:
        raise Refused("PROGRAM_ERROR", f"{tool} takes named arguments")
    return plain(named, f"an argument of {tool}")


def given(result: dict[str, Any]) -> Any:
    """A result as the interpreter takes it."""
    error = result.get("error")
    if error is None:
        return {"return_value": result["value"]}
    kind = KINDS.get(error["type"], "RuntimeError")
    return {"exc_type": kind, "message": f"{error['code']}: {error['message']}"}


def plain(value: Any, what: str, depth: int = 0) -> Any:
    """The value as JSON has it."""
    if depth > DEPTH_MAX:
        raise Refused("PROGRAM_ERROR", f"{what} is nested deeper than {DEPTH_MAX} levels")
    match value:
        case None | bool() | str():
            return value
        case int() if -INTEGER_MAX <= value < INTEGER_MAX:
            return value
        case float() if math.isfinite(value):
            return value
        case list() | tuple():
            return [plain(item, what, depth + 1) for item in value]
        case dict() if all(isinstance(key, str) for key in value):
            return {key: plain(item, what, depth + 1) for key, item in value.items()}
    raise Refused("PROGRAM_ERROR", f"{what} is no JSON: {type(value).__name__}")


def write(text: str) -> None:
    """Out, at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def hear() -> Any:
    """One line in; the end of them is the end of this process."""
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def die_with_parent() -> None:
    """Where the system can: a parent that was killed leaves nobody behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def bound(worker: int | None, memory_bytes: int) -> None:
    """Where the system can: what Monty does not count is bounded, too."""
    if sys.platform == "linux" and worker is not None:
        most = 2 * memory_bytes + WORKER_BYTES
        resource.prlimit(worker, resource.RLIMIT_DATA, (most, most))


def main() -> None:
    """One program."""
    die_with_parent()
    write("ready\n")
    start = hear()
    host = Host(start)
    limits: monty.ResourceLimits = {
        "max_turn_duration_secs": start["timeout_s"],
        "max_memory": start["memory_bytes"],
        "max_recursion_depth": RECURSION_MAX,
        "max_suspensions": SUSPENSIONS_MAX,
    }
    policy: monty.OSPolicy = {"datetime": "call_host", "sleep": "zero", "random_start": "call_host"}
    with monty.Monty(max_processes=1) as pool, pool.checkout(limits=limits, os_policy=policy) as session:
        bound(session.worker_pid, start["memory_bytes"])
        try:
            host.run(session)
        except Refused as error:
            write(f"{host.word} {json.dumps({'error': error.told})}\n")


if __name__ == "__main__":
    main()

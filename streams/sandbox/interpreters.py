"""How the process of a language is started, and with what environment: next to nothing."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pml.schemas.structure import Language
from pml.streams.sandbox.errors import SandboxMissing

_FOLDER = Path(__file__).parent
# V8 keeps its stack below the thread's 8 MB; a program that recurses without end gets its RangeError.
_STACK_KB = 900
_DENO = ("run", "--quiet", "--no-prompt", "--no-remote", "--no-npm", "--no-config", "--no-lock")
_DENIED = ("read", "write", "net", "env", "run", "ffi", "sys", "import")


@dataclass(frozen=True, slots=True)
class Command:
    """What to execute; `more_mb` is how much more memory it may take than it has when it is ready."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    more_mb: int | None = None


def command_of(language: Language, memory_mb: int, cache: Path) -> Command:
    """The process that runs programs of a language; `cache` is a folder that its interpreter may use.

    Raises:
        SandboxMissing: the interpreter is not installed.
    """
    return _python() if language == "python" else _typescript(memory_mb, cache)


def _python() -> Command:
    if find_spec("pydantic_monty") is None:
        raise SandboxMissing("Python programs that are no DAG run in Monty: pip install pydantic-monty")
    return Command((sys.executable, "-I", str(_FOLDER / "python_host.py")), {"LANG": "C.UTF-8"})


def _typescript(memory_mb: int, cache: Path) -> Command:
    deno = deno_path()
    if deno is None:
        raise SandboxMissing(
            "TypeScript programs that are no DAG run in Deno: "
            "pip install 'procedural-memory-layer[typescript]'"
        )
    flags = (
        f"--max-old-space-size={memory_mb}",
        "--disallow-code-generation-from-strings",
        f"--stack-size={_STACK_KB}",
    )
    arguments = (deno, *_DENO, *(f"--deny-{name}" for name in _DENIED), f"--v8-flags={','.join(flags)}")
    environment = {"DENO_DIR": str(cache), "NO_COLOR": "1", "DENO_NO_UPDATE_CHECK": "1", "TZ": "UTC"}
    # Twice: what V8 does not count as its heap, as the bytes of buffers, is bounded by the system.
    return Command((*arguments, str(_FOLDER / "typescript_host.js")), environment, more_mb=2 * memory_mb)


def deno_path() -> str | None:
    """The one that is installed beside this Python, else one on the path."""
    beside = Path(sysconfig.get_path("scripts")) / "deno"
    return str(beside) if beside.is_file() else shutil.which("deno")

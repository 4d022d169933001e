"""Ways out of the sandbox: each ends in an error of the program or of its process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest

from pml.schemas.errors import PMLError
from pml.schemas.structure import Language
from tests.streams.sandbox.running import played

PYTHON = [
    "open('/etc/passwd').read()",
    "from pathlib import Path\nPath('/etc/passwd').read_text()",
    "from pathlib import Path\nPath('/tmp/probe').write_text('x')",
    "import os\nos.system('true')",
    "import os\nreturn os.environ['PATH']",
    "import os\nreturn os.getenv('PATH') or 1 / 0",
    "import os\nreturn os.listdir('/')",
    "import subprocess\nsubprocess.run(['true'])",
    "import socket\nsocket.socket()",
    "import urllib.request\nurllib.request.urlopen('http://127.0.0.1')",
    "import ctypes\nctypes.CDLL(None)",
    "__import__('os').system('true')",
    "eval('__import__(\"os\")')",
    "exec('import subprocess')",
    "().__class__.__base__.__subclasses__()",
    "(lambda: 0).__globals__['__builtins__']",
    "return mcp.__class__.__init__.__globals__",
    "return mcp.path",
    "return type(mcp).__subclasses__()",
    "import datetime\ndatetime.datetime.now()",
    "import time\nreturn [time.time()]",
    "import random\nrandom.random()",
    "import secrets\nsecrets.token_hex()",
    "import uuid\nreturn str(uuid.uuid4())",
    "input('>')",
    "breakpoint()",
    "import sys\nsys.stdout.write('forged')\nraise ValueError",
    "while True: pass",
    "x = []\nwhile True: x.append('x' * 1_000_000)",
    "x = 'x' * 10**10",
    "x = 'x'\nwhile True: x = x + x",
    "x = 10**10**8",
    "def f(n): return f(n + 1)\nf(0)",
    "x = []\nfor n in range(100_000): x = [x]\nreturn x",
    "async def f(): return await f()\nawait f()",
    "return {1: 2}",
    "return 10**40",
    "return float('nan')",
    "await mcp.a.b(1, 2)",
    "return 'x' * 2_000_000",
    "await mcp.a.b(x='x' * 2_000_000)",
]
TYPESCRIPT = [
    "return Deno.readTextFileSync('/etc/passwd');",
    "return globalThis['De' + 'no'].env.toObject();",
    "return await fetch('http://127.0.0.1');",
    "return new WebSocket('ws://127.0.0.1');",
    "return new Deno.Command('true').outputSync();",
    "return process.env;",
    "return require('fs');",
    "return new Worker('data:text/javascript,1');",
    "return new WebAssembly.Memory({ initial: 65536 });",
    "return eval('1');",
    "return new Function('return this')();",
    "return (async () => {}).constructor('return 1')();",
    "return (function* () {}).constructor('return 1')().next();",
    "return setTimeout.constructor('return this')();",
    "return Date.now();",
    "return new Date().getTime();",
    "return Date();",
    "return new (new Date(0).constructor)();",
    "return Reflect.construct(Date, []);",
    "return new Intl.DateTimeFormat().format();",
    "return Math.random();",
    "return crypto.randomUUID();",
    "return performance.now();",
    "return new SharedArrayBuffer(8);",
    "return new WeakRef({}).deref();",
    "return Temporal.Now.instant();",
    "return localStorage.length;",
    "return prompt('x');",
    "while (true) {}",
    "for (;;) await null;",
    "const f = (): any => f() + 1; return f();",
    "const x: any[] = []; while (true) x.push(new Array(1e5).fill(1));",
    "const x: any[] = []; while (true) x.push(new Uint8Array(1e7).fill(1));",
    "let x = 'x'; while (true) x += x;",
    "let x: any = []; for (let i = 0; i < 1e6; i++) x = [x]; return x;",
    "await new Promise(() => {});",
    "throw { get message() { throw 1; }, toString() { throw 2; } };",
    "return 10n;",
    "const x: any = {}; x.x = x; return x;",
    "await mcp.a.b(1);",
    "await mcp.a.b({ toJSON: () => 'forged' });",
    "return 'x'.repeat(2_000_000);",
    "await mcp.a.b({ x: 'x'.repeat(2_000_000) });",
    "Object.prototype.toJSON = () => 'x'; await mcp.a.b({});",
    "Object.defineProperty(Array.prototype, '0', { set() { throw 1; } }); await mcp.a.b({});",
]
PROBES: list[tuple[Language, str]] = [
    *(("python", text) for text in PYTHON),
    *(("typescript", text) for text in TYPESCRIPT),
]
CODES = {"PROGRAM_ERROR", "SANDBOX_TIMEOUT", "SANDBOX_MEMORY", "SANDBOX_DIED", "OUTPUT_TOO_LARGE"}


async def outcome(folder: Path, language: Language, text: str) -> str:
    """The code of the error that a probe ends with; what it gave where it is none."""
    try:
        end, steps = await played(folder, language, text)
    except PMLError as error:
        return error.code
    return str(end.get("error", {}).get("code") or (end, steps))


@pytest.mark.parametrize(("language", "text"), PROBES)
async def test_a_way_out_ends_in_an_error(language: Language, text: str, tmp_path: Path) -> None:
    assert await outcome(tmp_path, language, text) in CODES
    left = [
        child for child in psutil.Process().children(recursive=True) if "host" in " ".join(command(child))
    ]
    assert left == []


def command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.NoSuchProcess:
        return []


@pytest.mark.parametrize(
    ("language", "text", "value"),
    [
        ("typescript", "console.log('ready\\n{\"value\": 1}'); return 2;", 2),
        ("python", "print('{\"value\": 1}')\nreturn 2", 2),
        ("typescript", "Promise.prototype.then = () => 1 as any; return 2;", 2),
        ("typescript", "JSON.stringify = () => '{\"value\":1}'; JSON.parse = () => 1; return 2;", 2),
        ("typescript", "Array.prototype.push = () => 1; String.prototype.replace = () => 'x'; return 2;", 2),
        ("typescript", "Object.prototype.error = { code: 'x' } as any; return (await mcp.a.b({n: 2})).n;", 2),
        ("typescript", "return [typeof Deno, typeof process, typeof fetch];", ["undefined"] * 3),
        ("typescript", "return new Date(0).toISOString();", "1970-01-01T00:00:00.000Z"),
    ],
)
async def test_what_a_program_says_aside_and_what_it_breaks_for_itself_changes_nothing(
    language: Language, text: str, value: Any, tmp_path: Path
) -> None:
    assert (await played(tmp_path, language, text))[0] == {"value": value}

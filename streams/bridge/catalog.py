"""The bridge and `pml.catalog`: it publishes tools and permissions, and obeys the speculation switch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from pml.schemas.catalog import CATALOG, CatalogRecord, PermissionRecord, ServerTools, SpeculationSwitch
from pml.schemas.codec import decode_catalog, encode, open_envelope
from pml.schemas.errors import (
    ConfigurationError,
    PMLError,
    UndecodableRecord,
    UnknownMessage,
)
from pml.streams.bridge.gate import Gate
from pml.streams.bridge.letters import DeadLetters
from pml.streams.bridge.patience import patiently
from pml.streams.bridge.permissions_file import PermissionsWatch, permissions_hash
from pml.streams.bridge.server import Server
from pml.streams.connection import client_options
from pml.streams.log.append import Appender, Outgoing
from pml.streams.reachability import broker_errors
from pml.streams.settings import Settings

PERMISSIONS_ID = "file"
# A switch holds within two seconds and an approval within one: each is looked for several times.
POLL_MS = 250
CONTACT_TIMEOUT_S = 1.0
# Two machines do not get a new file in the same moment.
DIFFERENCE_GRACE_S = 10.0

log = structlog.get_logger("pml.bridge")


class CatalogLink:
    """Follows the catalog from its beginning; whoever owns partition 0 of the calls also writes it."""

    def __init__(
        self,
        settings: Settings,
        servers: Mapping[str, Server],
        gate: Gate,
        watch: PermissionsWatch,
        *,
        appender: Appender,
        letters: DeadLetters,
        owner: Callable[[], bool],
        on_switched_off: Callable[[], None],
    ) -> None:
        self._settings, self._servers, self._gate, self._watch = settings, servers, gate, watch
        self._appender, self._letters = appender, letters
        self._owner, self._on_switched_off = owner, on_switched_off
        self._topic = settings.topics.catalog
        self._known: dict[bytes, bytes] = {}
        self._differs_since_s: float | None = None
        self.published = asyncio.Event()
        gate.permissions = watch.file

    async def run(self) -> None:
        """Follow, watch, publish, for ever.

        Raises:
            ConfigurationError: another bridge owns partition 0 and has another permissions file.
            BrokerUnavailable, InDoubt: records could not be written for too long.
        """
        pair = TopicPartition(self._topic, 0)
        consumer = AIOKafkaConsumer(
            **client_options(self._settings),
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=POLL_MS,
        )
        async with broker_errors(self._settings):
            await consumer.start()
        try:
            consumer.assign([pair])
            await consumer.seek_to_beginning(pair)
            while True:
                await self._step(consumer, pair)
        finally:
            await consumer.stop()

    async def _step(self, consumer: Any, pair: Any) -> None:
        batch = await consumer.getmany(pair, timeout_ms=POLL_MS)
        for record in batch.get(pair, []):
            await self._fold(record)
        self._read_permissions()
        end = await _end(consumer, pair)
        if end is not None:
            self._gate.heard()
        if not self._gate.open or self._gate.switches:
            self._on_switched_off()
        if end is not None and await consumer.position(pair) >= end:
            await self._compare_or_publish()

    async def _fold(self, record: Any) -> None:
        key = record.key or b""
        if record.value is None:
            self._known.pop(key, None)
            if key.startswith(b"switch/"):
                self._gate.switches.pop(key.removeprefix(b"switch/").decode(errors="replace"), None)
            return
        try:
            decoded = decode_catalog(record.value)
        except (UndecodableRecord, UnknownMessage) as error:
            await self._pass_over(record, error)
            return
        if key.startswith((b"tool/", b"permission/")):
            self._known[key] = record.value
        if isinstance(decoded.data, SpeculationSwitch):
            self._gate.switches[decoded.id] = decoded.data.mode

    async def _pass_over(self, record: Any, error: PMLError) -> None:
        """Kinds of later releases are not ours to read; what is broken becomes a dead letter."""
        if not is_foreign_kind(record.value):
            await self._letters.send(record, "decode", error)

    def _read_permissions(self) -> None:
        try:
            changed = self._watch.changed()
        except ConfigurationError as error:
            log.error("permissions file is wrong; the last good one holds", error=error.message)
            return
        if changed:
            log.info("permissions file read again", tools=len(self._watch.file.tools))
            self._gate.permissions = self._watch.file

    async def _compare_or_publish(self) -> None:
        if self._owner():
            self._differs_since_s = None
            await self._publish()
            self.published.set()
        else:
            self._compare()

    async def _publish(self) -> None:
        wanted = {record.key: encode(record) for record in self._records()}
        gone = [key for key in self._known if key.startswith(b"tool/") and key not in wanted]
        for key, value in wanted.items():
            if self._known.get(key) != value:
                await self._send(Outgoing(key, value))
                self._known[key] = value
        for key in gone:
            await self._send(Outgoing(key, None))
            del self._known[key]

    def _records(self) -> Iterable[CatalogRecord]:
        for name, server in self._servers.items():
            yield CatalogRecord(kind=ServerTools.KIND, id=name, data=server.record)
        yield permission_record(self._watch)

    async def _send(self, record: Outgoing) -> None:
        await patiently(lambda: self._appender.send(self._topic, 0, [record]))

    def _compare(self) -> None:
        """The file of the bridge that publishes is the one that holds; ours must say the same."""
        published = self._known.get(permission_record(self._watch).key)
        theirs = decode_catalog(published).data if published is not None else None
        if not isinstance(theirs, PermissionRecord) or theirs.hash == permissions_hash(self._watch.file):
            self._differs_since_s = None
            return
        now_s = asyncio.get_running_loop().time()
        self._differs_since_s = self._differs_since_s or now_s
        if now_s - self._differs_since_s > DIFFERENCE_GRACE_S:
            raise ConfigurationError(
                f"{self._settings.mcp_permissions} differs from the permissions file of the bridge that "
                "publishes it (the owner of tool-calls partition 0); give every bridge the same file"
            )


def permission_record(watch: PermissionsWatch) -> CatalogRecord:
    """The catalog record of the permissions file."""
    data = PermissionRecord(file=watch.file, hash=permissions_hash(watch.file))
    return CatalogRecord(kind=PermissionRecord.KIND, id=PERMISSIONS_ID, data=data)


def is_foreign_kind(value: bytes) -> bool:
    """Whether a record names a kind that this release does not know."""
    try:
        return open_envelope(value, "kind").type not in CATALOG
    except UndecodableRecord:
        return False


async def _end(consumer: Any, pair: Any) -> int | None:
    """The end of the catalog as the broker says it now; None where it does not answer."""
    try:
        async with asyncio.timeout(CONTACT_TIMEOUT_S):
            return int((await consumer.end_offsets([pair]))[pair])
    except (KafkaError, TimeoutError, OSError):
        return None

"""A connection that the broker has just reset is told as lost, also by uvloop."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import uvloop
from aiokafka import conn
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.metadata import MetadataRequest

from pml.streams.lost_connections import mend_connections

pytestmark = pytest.mark.integration
# What makes closing a reset: nothing is waited for.
LINGER_NOT = struct.pack("ii", 1, 0)


@pytest.fixture(autouse=True)
def mended() -> Iterator[None]:
    """The mend, in this test only."""
    before = conn.AIOKafkaConnection
    mend_connections()
    yield
    conn.AIOKafkaConnection = before


class Relay:
    """Stands between a client and the broker, and resets the client's connection when it is told to."""

    def __init__(self, broker: str) -> None:
        self.host, _, port = broker.partition(":")
        self.broker_port = int(port)
        self.port = 0
        self._clients: list[asyncio.StreamWriter] = []

    def reset(self) -> None:
        """Reset what is connected."""
        for writer in self._clients:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
            writer.transport.abort()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Relay]:
        """Listen while the block runs."""
        server = await asyncio.start_server(self._relay, self.host, 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.append(writer)
        from_broker, to_broker = await asyncio.open_connection(self.host, self.broker_port)
        await asyncio.gather(_copy(reader, to_broker), _copy(from_broker, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError, RuntimeError):
        while data := await reader.read(65_536):
            writer.write(data)
    writer.close()


async def _send_until_lost(connection: Any) -> None:
    """Send in each turn of the loop, so also in the one in which only the transport knows of the loss."""
    while connection.connected():
        connection.send(MetadataRequest([])).close()
        await asyncio.sleep(0)


def test_what_is_sent_on_a_connection_that_was_just_reset_is_a_lost_connection(kafka: str) -> None:
    async def reset_while_sending() -> None:
        async with Relay(kafka).running() as relay:
            connection = await conn.create_conn(relay.host, relay.port)
            relay.reset()
            with pytest.raises(KafkaConnectionError, match="lost"):
                await _send_until_lost(connection)
            assert not connection.connected()

    uvloop.run(reset_while_sending())

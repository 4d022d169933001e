"""A mend of aiokafka under uvloop: what is sent on a connection that the broker has just closed.

aiokafka expects an OSError there; uvloop raises a bare RuntimeError (aiokafka's issue 1038). It ends the
task that keeps the metadata of a client, without a word, and whoever asks that client for metadata waits for
ever: seen as a sink that stood still after a broker was killed. Here it is the error of a lost connection,
which every caller handles.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiokafka import conn
from aiokafka.errors import KafkaConnectionError, KafkaError


class MendedConnection(conn.AIOKafkaConnection):
    """A connection whose loss is always told as one."""

    def send(self, request: Any, expect_response: bool = True) -> Any:
        """Send a request, as aiokafka does.

        Raises:
            KafkaConnectionError: the connection is lost.
        """
        with self._losing():
            return super().send(request, expect_response)

    def _send_sasl_token(self, payload: bytes, expect_response: bool = True) -> Any:
        with self._losing():
            return super()._send_sasl_token(payload, expect_response)

    @contextmanager
    def _losing(self) -> Iterator[None]:
        try:
            yield
        except KafkaError:  # which is a RuntimeError
            raise
        except RuntimeError as error:
            self.close(reason=conn.CloseReason.CONNECTION_BROKEN, exc=error)
            raise KafkaConnectionError(f"Connection at {self._host}:{self._port} lost: {error}") from error


def mend_connections() -> None:
    """Let every client of this process connect by `MendedConnection`."""
    conn.AIOKafkaConnection = MendedConnection

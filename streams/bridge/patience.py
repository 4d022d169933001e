"""How long the bridge holds on to an answer while the broker is away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from aiokafka.errors import KafkaError

from pml.schemas.errors import BrokerUnavailable
from pml.streams.log.append import InDoubt

T = TypeVar("T")
# A broker that is replaced is back within half a minute; the bridge ends itself when it is away for twice
# that, and answers of unsafe calls that it holds are lost with it.
PATIENCE_S = 60.0
PAUSE_S = 0.5


async def patiently(action: Callable[[], Awaitable[T]], patience_s: float = PATIENCE_S) -> T:
    """Try again, for `patience_s`, what may be done twice and fails because the broker is away.

    Raises:
        BrokerUnavailable, InDoubt, KafkaError: the last failure, when patience is at its end.
    """
    deadline_s = asyncio.get_running_loop().time() + patience_s
    while True:
        try:
            return await action()
        except (BrokerUnavailable, InDoubt, KafkaError):
            if asyncio.get_running_loop().time() >= deadline_s:
                raise
        await asyncio.sleep(PAUSE_S)

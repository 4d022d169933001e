"""A compacted topic, read to its end once."""

from __future__ import annotations

from pml.streams.connection import client_options
from pml.streams.log.tail import Tails
from pml.streams.reachability import broker_errors
from pml.streams.settings import Settings

# A person waits for the whole of it; the broker answers four as fast as one.
CONSUMERS = 4


async def newest_values(settings: Settings, topic: str, partitions: int) -> dict[bytes, bytes]:
    """The newest value of each key; keys that were deleted are absent.

    Raises:
        BrokerUnavailable: the broker does not answer.
    """
    tails = Tails(client_options(settings), consumers=min(partitions, CONSUMERS))
    pairs = [(topic, number) for number in range(partitions)]
    values: dict[bytes, bytes | None] = {}
    try:
        async with broker_errors(settings):
            await tails.start()
        first, end = await tails.beginnings(pairs), await tails.ends(pairs)
        for pair in pairs:
            async for records in tails.read(*pair, first[pair], end[pair]):
                values.update((record.key, record.value) for record in records)
    finally:
        await tails.stop()
    return {key: value for key, value in values.items() if value is not None}

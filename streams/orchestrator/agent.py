"""The Faust agent: puts each chunk into the queue of its partition, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pml.schemas.topics import Topics
from pml.streams.app import ChunkApp, chunk_topic
from pml.streams.orchestrator.partition import Partition


def add_agent(app: ChunkApp, topics: Topics, partition_of: Callable[[int], Partition | None]) -> None:
    """Register the agent over both input topics.

    A chunk whose partition is not (or no longer) ours is dropped: where the partition is taken, its inputs
    are read from the position that its log says. Acknowledging is left to the partition, in order.
    """

    async def enqueue(stream: Any) -> None:
        async for event in stream.noack().events():
            partition = partition_of(event.message.partition)
            if partition is not None:
                partition.inbox.put(event.value, event.ack)

    inputs = chunk_topic(app, topics.commands, topics.tool_outcomes)
    app.agent(inputs, name="orchestrator.enqueue", concurrency=1)(enqueue)

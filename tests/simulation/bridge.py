"""The bridge of one process: the real service, dispatcher and claims over simulated clients and servers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from aiokafka import TopicPartition

from pml.processors.capabilities.analysing import analysed
from pml.processors.capabilities.inlining import Find, inlined
from pml.schemas.analysis import AnalyseRequest
from pml.schemas.calls import CallRun
from pml.schemas.catalog import SpeculationMode, SpeculationSwitch
from pml.schemas.codec import decode_catalog
from pml.schemas.identifiers import INTERNAL_SERVER
from pml.schemas.inlining import InlineAnswer, InlineRequest
from pml.schemas.workflow import Workflow
from pml.streams.bridge.admission import Admission
from pml.streams.bridge.builtin import CONCURRENCY, Builtin
from pml.streams.bridge.claims import Claims
from pml.streams.bridge.clients import Clients
from pml.streams.bridge.dispatcher import Dispatcher
from pml.streams.bridge.gate import Gate
from pml.streams.bridge.outcomes import Outcomes
from pml.streams.bridge.partition import Partition
from pml.streams.bridge.partitions import Partitions
from pml.streams.bridge.runner import Runner
from pml.streams.bridge.service import CallService
from pml.streams.bridge.step import Steps
from pml.streams.log.append import Appender
from pml.streams.log.tail import Tails
from pml.streams.settings import Settings
from tests.simulation.broker import Draft
from tests.simulation.clients import Consumer, Producer
from tests.simulation.groups import Group
from tests.simulation.interpreting import Interpreted
from tests.simulation.loop import PROCESS
from tests.simulation.network import Network
from tests.simulation.predictions import predict
from tests.simulation.programs import CAPABILITIES, meant
from tests.simulation.servers import Hands, ServerDouble

# The real link looks four times a second; a switch must hold within two.
LOOK_MS = 500


@dataclass
class Place:
    """What a bridge is put into."""

    settings: Settings
    network: Network
    group: Group
    hands: Hands
    mode: SpeculationMode
    now_ms: Callable[[], int]
    fail: Callable[[BaseException], None]


@dataclass
class Letters:
    """Dead letters of the bridge, kept in the broker."""

    place: Place

    async def send(self, record: Any, stage: str, error: Any) -> None:
        """Keep one, with the reason as its header."""
        await self.place.network.hop()
        topic = self.place.settings.topics.dead_letters
        headers = (("pml-dlq-stage", stage.encode()), ("pml-dlq-code", error.code.encode()))
        self.place.network.broker.append((topic, 0), [Draft(record.key, record.value, headers)])

    async def close(self) -> None:
        """Nothing is held."""


class Shared:
    """The capabilities that every tenant of the simulation has."""

    async def workflow(self, tenant: str, workflow: Workflow) -> Workflow:
        """A workflow with tasks of tools only."""
        return inlined(workflow, CAPABILITIES.get)

    async def look(self, tenant: str, question: Callable[[Find], Any]) -> Any:
        """What a function of them comes to."""
        return question(CAPABILITIES.get)


async def analyse(run: CallRun) -> dict[str, Any]:
    """What the service of the real bridge answers, without a thread of its own."""
    return analysed(AnalyseRequest.model_validate(run.arguments)).model_dump(mode="json")


async def match(run: CallRun) -> dict[str, Any]:
    """What is meant is written in the intent itself."""
    return meant(run.arguments["intent"]).model_dump(mode="json")


async def inline(run: CallRun) -> dict[str, Any]:
    """What the service of the real bridge answers, by a catalog that everybody shares."""
    asked = InlineRequest.model_validate(run.arguments)
    return InlineAnswer(workflow=inlined(asked.workflow, CAPABILITIES.get)).model_dump(mode="json")


class BridgeProcess:
    """One worker with the role `bridge`, to be run in a process of its own."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.dispatcher: Dispatcher | None = None
        self.admission: Admission | None = None
        self.partitions: Partitions | None = None
        self.gate: Gate | None = None

    async def run(self) -> None:
        """Work until the process dies."""
        try:
            async with asyncio.TaskGroup() as tasks:
                await self._serve(tasks)
        except BaseException as error:
            self._place.fail(error)
            raise

    async def _serve(self, tasks: asyncio.TaskGroup) -> None:
        place, topics, now_ms = self._place, self._place.settings.topics, self._place.now_ms
        names = {spec.server for spec in place.hands.toolbox.specs.values()}
        servers: Any = {name: ServerDouble(name, place.hands) for name in sorted(names)}
        clients = await self._clients()
        self.gate = gate = Gate(place.mode, servers)
        outcomes = Outcomes(topics.tool_outcomes, clients.outcomes)
        steps = Steps(place.settings, clients.tails, Interpreted(), Shared())
        builtin = Builtin(
            {"analyse": analyse, "inline": inline, "match": match, "predict": predict, "step": steps}
        )
        runner = Runner(servers, 1 << 20, outcomes.send, now_ms, builtin=builtin)
        self.admission = self._admission(servers)
        self.dispatcher = Dispatcher(
            servers, self.admission, gate, runner=runner, outcomes=outcomes, tasks=tasks, now_ms=now_ms
        )
        self.partitions = self._partitions(clients)
        service = CallService(topics, clients, self.partitions, self.dispatcher, tasks, now_ms=now_ms)
        tasks.create_task(self._follow())
        await service.run(asyncio.Event())

    async def _clients(self) -> Clients:
        place = self._place
        producer = partial(Producer, place.network)
        claims, outcomes = Appender({}, new_producer=producer), Appender({}, new_producer=producer)
        tails = Tails({}, new_consumer=partial(Consumer, place.network))
        letters: Any = Letters(place)
        found = Clients(claims, outcomes, tails, letters, Consumer(place.network, place.group))
        for client in (claims, outcomes, tails, found.consumer):
            await client.start()
        return found

    def _admission(self, servers: dict[str, ServerDouble]) -> Admission:
        bridge = self._place.settings.bridge
        limits = {name: server.concurrency for name, server in servers.items()}
        limits[INTERNAL_SERVER] = CONCURRENCY
        return Admission(bridge.concurrency, bridge.session_in_flight_max, limits)

    def _partitions(self, clients: Clients) -> Partitions:
        place, process = self._place, PROCESS.get()
        name = process.name if process else ""
        in_flight_max = place.settings.bridge.partition_in_flight_max
        topic = place.settings.topics.call_claims

        def new(number: int) -> Partition:
            claims = Claims(topic, number, name, clients.claims, clients.tails, now_ms=place.now_ms)
            return Partition(number, claims, in_flight_max)

        return Partitions(new)

    async def _follow(self) -> None:
        """What the link of the real bridge does with the catalog: permissions, switch, contact."""
        assert self.gate is not None
        assert self.dispatcher is not None
        place, pair = self._place, TopicPartition(self._place.settings.topics.catalog, 0)
        consumer = Consumer(place.network)
        consumer.assign([pair])
        while True:
            for record in (await consumer.getmany(pair, timeout_ms=LOOK_MS)).get(pair, []):
                self._fold(record)
            self.gate.permissions = place.hands.toolbox.permissions()
            self.gate.heard()
            if not self.gate.open or self.gate.switches:
                self.dispatcher.stop_speculating()

    def _fold(self, record: Any) -> None:
        assert self.gate is not None
        if record.value is None:
            return
        found = decode_catalog(record.value)
        if isinstance(found.data, SpeculationSwitch):
            self.gate.switches[found.id] = found.data.mode

"""`pml:predict`: what a session does next, as a service of the server `pml` (spec story 12.4)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from pml.processors.discovery.library import Library
from pml.schemas.calls import CallRun
from pml.schemas.errors import PMLError
from pml.schemas.prediction import PredictRequest
from pml.streams.discovery.finder import Finder
from pml.streams.settings import Settings

if TYPE_CHECKING:
    from pml.streams.learning.serving import Known, Served, Serving

log = structlog.get_logger("pml.bridge")


class NothingKnown(PMLError):
    """There is no model, and no session that something could be counted of."""

    code = "NOTHING_KNOWN"
    retryable = True


class Anew:
    """Makes anew what serves tenants, one after the other.

    So a question that needs the same thread waits for one of them at most.

    Args:
        make: what serves a tenant.
        most: so many tenants wait at once; another one's next question asks again.
    """

    def __init__(self, make: Callable[[str], Awaitable[None]], most: int) -> None:
        self._make, self._most = make, most
        self._waiting: dict[str, None] = {}
        self._making: asyncio.Task[None] | None = None

    def begin(self, tenant: str) -> None:
        """Make it as soon as it is its turn, once however often it is asked for until then."""
        if len(self._waiting) < self._most:
            self._waiting.setdefault(tenant)
        if self._making is None:
            self._making = asyncio.create_task(self._run())

    def close(self) -> None:
        """Begin nothing more."""
        if self._making is not None:
            self._making.cancel()

    async def _run(self) -> None:
        try:
            while self._waiting:
                tenant = next(iter(self._waiting))
                await self._made(tenant)
                del self._waiting[tenant]
        finally:
            self._making = None

    async def _made(self, tenant: str) -> None:
        try:
            await self._make(tenant)
        except PMLError as error:
            log.warning("what predicts could not be made anew", tenant=tenant, reason=error.message)
        except Exception:
            # What is at hand answers on, whatever it was.
            log.exception("what predicts could not be made anew: a defect of PML", tenant=tenant)


class Predict:
    """Answers with the model that was promoted last; without one, with what was counted of the latest runs.

    One thread beside the loop does what takes long; a question whose tenant's model is at hand does not wait
    for it, nor for the count that follows the one that answers. What models need is imported with the first
    question, or before it by `prepare`: it takes as long as the rest of a bridge's start.
    """

    def __init__(self, settings: Settings, finder: Finder) -> None:
        self._settings, self._finder = settings, finder
        self._thread = ThreadPoolExecutor(1, "pml-predict")
        self._serving: Serving | None = None
        self._anew = Anew(self._made_anew, settings.learning.tenants_at_hand)

    async def prepare(self) -> None:
        """Do what the first question would wait for: imports, and the models that were promoted.

        What cannot be had now is left to the question.
        """
        try:
            await self._load_promoted()
        except PMLError as error:
            log.warning("predictions could not be prepared; the first takes longer", reason=error.message)
        except Exception:
            # As with a question: a defect of what predicts must not end the bridge.
            log.exception("predictions could not be prepared: a defect of PML")

    async def _load_promoted(self) -> None:
        serving = await self._in_thread(self._imported)
        from pml.streams.learning.serving import known_of

        most = self._settings.learning.tenants_at_hand

        def promoted(library: Library) -> list[Known]:
            return [known_of(library, tenant) for tenant in library.predicted[:most]]

        embedding = await self._finder.embedding()
        for known in await self._finder.look(promoted):
            await self._in_thread(partial(serving.served, known, embedding))

    async def __call__(self, run: CallRun) -> dict[str, Any]:
        """The answer, as structured content, for the tenant of the call.

        Raises:
            ValidationError: the arguments are no `PredictRequest`.
            NothingKnown: there is nothing to predict from yet.
            NotCountedYet: what was counted made room for that of other tenants.
            StoreUnavailable, QueryError: nothing is at hand, and the store does not answer.
            BrokerUnavailable: the catalog cannot be read.
        """
        request, tenant = PredictRequest.model_validate(run.arguments), run.tenant
        serving = self._serving or await self._in_thread(self._imported)
        from pml.streams.learning.serving import answered, known_of

        def known(library: Library) -> Known:
            return known_of(library, tenant)

        embedding = await self._finder.embedding()
        found = await self._finder.look(known)
        # The thread may be reading another tenant's model, or counting its runs.
        served: Served | None = serving.ready(found)
        if served is None:
            served = await self._in_thread(partial(serving.served, found, embedding))
        elif serving.due(found, served):
            self._anew.begin(tenant)
        if served is None:
            raise NothingKnown("no model was trained, and no session has gone on yet; see: pml train")
        answer = await self._finder.look(lambda library: answered(library, tenant, request, served))
        return answer.model_dump(mode="json")

    def close(self) -> None:
        """Answer nothing more."""
        self._anew.close()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _made_anew(self, tenant: str) -> None:
        """Whatever it was asked for: another model may have been promoted while others had their turn."""
        serving = await self._in_thread(self._imported)
        from pml.streams.learning.serving import known_of

        embedding = await self._finder.embedding()
        found = await self._finder.look(lambda library: known_of(library, tenant))
        await self._in_thread(partial(serving.served, found, embedding))

    async def _in_thread(self, work: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _imported(self) -> Serving:
        if self._serving is None:
            from pml.streams.learning.serving import Serving

            self._serving = Serving(self._settings)
        return self._serving

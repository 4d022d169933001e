"""`pml:recall`: the episodic memory as a service of the server `pml` (the spike, §2.2)."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from pml.clickhouse.client import Store
from pml.clickhouse.episodes import EpisodeReader
from pml.processors.memory.embedding import HashedNgrams
from pml.processors.memory.memory import Memory
from pml.schemas.calls import CallRun
from pml.schemas.errors import StoreUnavailable
from pml.schemas.memory import RecallAnswer, RecallRequest
from pml.streams.connection import store_url
from pml.streams.settings import Settings

# 10,000 episodes and their points take about 30 MB.
TENANTS_MAX = 8
# The sink itself is about so far behind; a thousand runs that begin in a second read what is new once.
FRESH_S = 1.0
# Whoever asked has given up long before; the thread must not hang on a store that hangs.
ANSWER_TIMEOUT_S = 10


@dataclass(slots=True)
class _Tenant:
    reader: EpisodeReader
    memory: Memory
    read_at_s: float = float("-inf")


class Recall:
    """Keeps the newest episodes of a few tenants at hand; a question first reads what is new.

    One thread does it all, so the loop is never held up and nothing needs a lock. `fresh_s` is for how long
    nothing is read again.
    """

    def __init__(self, settings: Settings, fresh_s: float = FRESH_S) -> None:
        self._settings, self._fresh_s = settings, fresh_s
        self._thread = ThreadPoolExecutor(1, "pml-recall")
        self._store: Store | None = None
        self._tenants: OrderedDict[str, _Tenant] = OrderedDict()

    async def __call__(self, run: CallRun) -> dict[str, Any]:
        """The answer, as structured content.

        Raises:
            ValidationError: the arguments are no `RecallRequest`.
            StoreUnavailable, QueryError: the store does not answer, or has no tables.
        """
        request = RecallRequest.model_validate(run.arguments)
        work = asyncio.get_running_loop().run_in_executor(self._thread, self._answer, run.tenant, request)
        return (await work).model_dump(mode="json")

    def close(self) -> None:
        """Answer nothing more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _answer(self, tenant: str, request: RecallRequest) -> RecallAnswer:
        try:
            known = self._known(tenant)
            if time.monotonic() - known.read_at_s >= self._fresh_s:
                known.memory.add(known.reader.read())
                known.read_at_s = time.monotonic()
        except StoreUnavailable:
            self._forget()
            raise
        return known.memory.recall(request)

    def _known(self, tenant: str) -> _Tenant:
        """A tenant's memory; the one that was asked longest ago makes room."""
        if self._store is None:
            url, database = store_url(self._settings), self._settings.clickhouse.database
            self._store = Store.connect(url, database, answer_timeout_s=ANSWER_TIMEOUT_S)
        if tenant not in self._tenants:
            most = self._settings.memory.episodes_max
            reader = EpisodeReader(self._store, tenant, most)
            self._tenants[tenant] = _Tenant(reader, Memory(HashedNgrams(), most))
        self._tenants.move_to_end(tenant)
        if len(self._tenants) > TENANTS_MAX:
            self._tenants.popitem(last=False)
        return self._tenants[tenant]

    def _forget(self) -> None:
        """The store may come back at another address, and with another past."""
        self._tenants.clear()
        if self._store is not None:
            self._store.close()
            self._store = None

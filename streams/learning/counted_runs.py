"""What is counted of a tenant's latest runs, where no model serves it, as often as there is time for it."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pml.clickhouse.client import Store
from pml.clickhouse.training.session_values import Stretch, read_session_values
from pml.processors.learning.counting import counted
from pml.processors.learning.known_sessions import KnownSession, as_sequences, learned_sources
from pml.processors.learning.model import NextModel
from pml.processors.memory.embedding import Embedding
from pml.schemas.errors import PMLError, StoreUnavailable
from pml.streams.connection import store_url
from pml.streams.learning.at_hand import keep_latest
from pml.streams.settings import Settings

# These take from half a second of one core to four, by how much their calls say.
COUNTED_RUNS = 300
# It may take this share of a tenant's time, so what is counted is older the more there is of it. Four seconds
# keep to the share with 400 s; the most leaves room for six, and bounds how old counts get.
COUNTING_SHARE = 0.01
COUNTED_AGAIN_MOST_S = 600.0
COUNTED_AGAIN_S = 1.0
# While there was nothing to count: who has just begun waits ten times what a look takes, not a hundred times.
LOOKING_SHARE = 0.1
# Nor longer than this, however long a busy machine took to connect. It is the most after the first count of a
# process, too, which compiles: that is no measure of what the next one takes.
LOOKED_AGAIN_MOST_S = 60.0
# After an error, from its end: a store that hangs takes ten seconds of the only thread at each look. All
# tenants leave it alone, and longer who met the error: one whose runs cannot be read keeps no other from its.
STORE_AGAIN_S = 30.0
FAILED_AGAIN_S = 60.0
STORE_TIMEOUT_S = 10
# Many more than there are models at hand: who comes back to none must not be counted out of turn.
TENANTS_WAITING_MAX = 4_096

Schemas = Mapping[str, Mapping[str, Any]]


class NotCountedYet(PMLError):
    """What was counted of a tenant's runs made room for that of others, and it is not its turn again yet."""

    code = "NOT_COUNTED_YET"
    retryable = True


@dataclass(frozen=True, slots=True)
class _Wait:
    """Until when nobody looks (monotonic time), and what the last look came to: an error, or something that
    was `counted`."""

    until_s: float = float("-inf")
    failed: PMLError | None = None
    counted: bool = False


class CountedRuns:
    """Counts the runs of tenants, and knows when again. One thread uses it, but for `due`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._store: Store | None = None
        self._tenants: OrderedDict[str, _Wait] = OrderedDict()
        self._all = _Wait()
        self._compiled = False

    def due(self, tenant: str) -> bool:
        """Whether a tenant's runs may be counted now. From any thread."""
        return not self._waits(tenant)

    def say_again(self, tenant: str) -> None:
        """Say why there is nothing, where the last look failed, or came to what is gone, and it is too early.

        Raises:
            StoreUnavailable, QueryError: as that look.
            NotCountedYet: it could count; what came of it is no longer there.
        """
        for wait in self._waits(tenant):
            if wait.failed is not None:
                raise _again(wait.failed)
            if wait.counted:
                raise self._made_room(wait.until_s - time.monotonic())

    def at_once(self, tenant: str) -> None:
        """Do not wait for the tenant's own turn."""
        self._tenants.pop(tenant, None)

    def count(self, tenant: str, schemas: Schemas, embedding: Embedding) -> NextModel | None:
        """A model of the tenant's latest runs; None where no session went on.

        Raises:
            StoreUnavailable, QueryError: the store does not answer.
        """
        began_s, wait_s, failed = time.monotonic(), FAILED_AGAIN_S, None
        found: NextModel | None = None
        try:
            found = self._counted(tenant, schemas, embedding)
            wait_s = self._wait_s(time.monotonic() - began_s, found is None)
        except PMLError as error:
            failed = _again(error)
            raise
        finally:
            # A defect of PML waits as an error does.
            wait = _Wait(time.monotonic() + wait_s, failed, found is not None)
            keep_latest(self._tenants, tenant, wait, TENANTS_WAITING_MAX)
        return found

    def _made_room(self, again_s: float) -> NotCountedYet:
        most = self._settings.learning.tenants_at_hand
        return NotCountedYet(
            "what was counted of this tenant's runs made room for that of other tenants; it is counted "
            f"again in {again_s:.0f} s. Raise learning.tenants_at_hand ({most}), or train a model (pml train)"
        )

    def _waits(self, tenant: str) -> list[_Wait]:
        """What a look has to wait for now: the tenant's own turn, and the store."""
        now_s = time.monotonic()
        return [each for each in (self._tenants.get(tenant), self._all) if each and now_s < each.until_s]

    def _wait_s(self, took_s: float, nothing: bool) -> float:
        """How long after a look that took so long the next one may be."""
        share = LOOKING_SHARE if nothing else COUNTING_SHARE
        most_s = COUNTED_AGAIN_MOST_S if self._compiled and not nothing else LOOKED_AGAIN_MOST_S
        self._compiled = self._compiled or not nothing
        return max(COUNTED_AGAIN_S, min(took_s / share, most_s))

    def _counted(self, tenant: str, schemas: Schemas, embedding: Embedding) -> NextModel | None:
        sessions = self._latest(tenant)
        if not any(len(each.elements) > 1 for each in sessions):
            return None
        sources = learned_sources(sessions, schemas)
        return counted(as_sequences(sessions, {}), embedding, sources)

    def _latest(self, tenant: str) -> Sequence[KnownSession]:
        try:
            if self._store is None:
                url, database = store_url(self._settings), self._settings.clickhouse.database
                self._store = Store.connect(url, database, answer_timeout_s=STORE_TIMEOUT_S)
            return read_session_values(self._store, Stretch(tenant, most=COUNTED_RUNS))
        except StoreUnavailable as error:
            self._all = _Wait(time.monotonic() + STORE_AGAIN_S, _again(error))
            # It may come back at another address.
            if self._store is not None:
                self._store.close()
                self._store = None
            raise


def _again(error: PMLError) -> PMLError:
    """The same error anew: one that was raised holds on to whatever was at work then."""
    return type(error)(error.message, **error.details)

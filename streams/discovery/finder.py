"""Answers what fits an intent, by the catalog as it is when somebody asks."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

import structlog

from pml.processors.discovery.finding import answer_of
from pml.processors.discovery.index import DiscoveryIndex, Filter
from pml.processors.discovery.library import Library
from pml.processors.memory.embedding import Embedding
from pml.schemas.codec import decode_catalog
from pml.schemas.discovery import DiscoverAnswer, DiscoverRequest
from pml.schemas.errors import UndecodableRecord, UnknownMessage
from pml.streams.discovery.catalog_tail import CatalogTail, News
from pml.streams.discovery.kept_points import KeptPoints, bring_to
from pml.streams.settings import WORDLLAMA, Settings

# Each holds its own words and points, with 4,000 tools about 20 MB; who asked longest ago makes room.
TENANTS_MAX = 8
T = TypeVar("T")
log = structlog.get_logger("pml.discovery")


def load_embedding(model: str) -> Embedding:
    """A model by its name in the settings; that which PML ships with takes most of a second.

    Raises:
        PrerequisiteError: it is of sentence-transformers, which is not installed.
    """
    if model == WORDLLAMA:
        from pml.streams.discovery.wordllama_embedding import WordLlamaEmbedding

        return WordLlamaEmbedding()
    from pml.streams.discovery.sentence_embedding import SentenceEmbedding

    return SentenceEmbedding(model)


@dataclass(slots=True)
class _Indexed:
    """The index of one tenant, and for which version of the library it holds."""

    index: DiscoveryIndex
    version: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class View:
    """What one question is answered from: one tenant's index and the library that it is of."""

    library: Library
    index: DiscoveryIndex
    tenant: str
    whole: bool


class Finder:
    """Nothing is read and no model is loaded before the first question.

    A question first reads what is new in the catalog, so it sees whatever was there when it was asked. One
    thread does all the work: the loop is never held up, and nothing needs a lock. Each tenant has an index of
    its own, over the tools of all and its own capabilities: what is not in it cannot be found.
    """

    def __init__(self, settings: Settings, load: Callable[[str], Embedding] = load_embedding) -> None:
        self._settings, self._load = settings, load
        self._tail = CatalogTail(settings)
        self._reading = asyncio.Lock()
        self._news: deque[News] = deque()
        self._thread = ThreadPoolExecutor(1, "pml-discovery")
        self._library = Library()
        self._tenants: OrderedDict[str, _Indexed] = OrderedDict()
        self._kept: KeptPoints | None = None
        self._embedding: Embedding | None = None

    async def __aenter__(self) -> Finder:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def discover(self, tenant: str, asked: DiscoverRequest) -> DiscoverAnswer:
        """What of a tenant fits an intent, the best first.

        Raises:
            BrokerUnavailable: no broker answers.
            TopicMismatch: the broker has no catalog.
        """
        return await self.ask(tenant, lambda view: _discovered(view, asked))

    async def ask(self, tenant: str, question: Callable[[View], T]) -> T:
        """What a function of the index comes to; it runs in the thread of the index.

        Raises:
            BrokerUnavailable: no broker answers.
            TopicMismatch: the broker has no catalog.
        """
        whole = await self._brought_up()
        return await self._in_thread(
            lambda: question(View(self._taken(), self._index_of(tenant), tenant, whole))
        )

    async def look(self, question: Callable[[Library], T]) -> T:
        """What a function of the library comes to, without any model.

        Raises:
            BrokerUnavailable: no broker answers.
            TopicMismatch: the broker has no catalog.
        """
        await self._brought_up()
        return await self._in_thread(lambda: question(self._taken()))

    async def embedding(self) -> Embedding:
        """What makes points of texts; the first time it is loaded.

        Raises:
            PrerequisiteError: it is of sentence-transformers, which is not installed.
        """
        return await self._in_thread(self._loaded)

    async def close(self) -> None:
        """Answer nothing more."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        async with self._reading:
            await self._tail.close()

    async def _read(self) -> bool:
        """Take up what is new; whether that is all."""
        async with self._reading:
            news = await self._tail.read()
            self._news.append(news)
            return news.whole

    async def _brought_up(self) -> bool:
        """Whoever stops waiting must not take what was read with it."""
        return await asyncio.shield(asyncio.ensure_future(self._read()))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _taken(self) -> Library:
        """The library with all news in it."""
        while self._news:
            self._take(self._news.popleft())
        return self._library

    def _take(self, news: News) -> None:
        if news.anew:
            self._library = Library()
            for known in self._tenants.values():
                known.version = None
        _take(self._library, news.records)

    def _loaded(self) -> Embedding:
        if self._embedding is None:
            self._embedding = self._load(self._settings.discovery.model)
        return self._embedding

    def _index_of(self, tenant: str) -> DiscoveryIndex:
        """The tenant's index, changed where its part of the catalog did."""
        embedding = self._loaded()
        if self._kept is None:
            self._kept = KeptPoints(self._settings.data_dir, embedding)
        known = self._tenants.setdefault(tenant, _Indexed(DiscoveryIndex(embedding)))
        self._tenants.move_to_end(tenant)
        if len(self._tenants) > TENANTS_MAX:
            self._tenants.popitem(last=False)
        version = self._library.version(tenant)
        if known.version != version:
            self._kept.bring_to(self._library.tool_documents)
            _bring_to(known.index, self._library, tenant, self._kept)
            known.version = version
        return known.index


def _bring_to(index: DiscoveryIndex, library: Library, tenant: str, kept: KeptPoints) -> None:
    shelf = library.shelf(tenant)
    bring_to(index, shelf.documents, kept)
    if index.pasts != shelf.pasts:
        index.remember(shelf.pasts)
    if dict(index.standings) != dict(shelf.standings):
        index.rate(shelf.standings)
    if index.links != shelf.links:
        index.link(shelf.links)


def _discovered(view: View, asked: DiscoverRequest) -> DiscoverAnswer:
    wanted = Filter(asked.filter.type, asked.filter.min_score)
    page = view.index.search(asked.intent, wanted, asked.limit, asked.offset)
    return answer_of(page, view.library, view.tenant, view.whole)


def _take(library: Library, records: Sequence[Any]) -> None:
    for record in records:
        kind, _, name = (record.key or b"").decode(errors="replace").partition("/")
        if record.value is None:
            library.drop(kind, name)
            continue
        try:
            library.take(decode_catalog(record.value))
        except (UndecodableRecord, UnknownMessage) as error:
            log.debug("catalog record passed over", offset=record.offset, reason=error.message)

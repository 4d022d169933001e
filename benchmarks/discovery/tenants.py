"""Tenants made of a data set: some workflows that became capabilities, and what is asked then."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.discovery.sets import Request, requests_of
from pml.processors.capabilities.intents import with_intent
from pml.processors.discovery.documents import Document, capability_document
from pml.processors.discovery.history import Past
from pml.processors.discovery.index import DiscoveryIndex
from pml.processors.discovery.match_fitting import Meant
from pml.processors.discovery.matching import Candidate, evidence
from pml.processors.memory.embedding import Embedding
from pml.streams.learning.data_sets import documents_of

# tau_sessions is left out: several agents did the same tasks there, each with other calls. Sets in which no
# two requests have the same calls have only intents that no capability fits.
NAMES = (
    "api_bank",
    "bfcl_multi_turn",
    "metatool_toole",
    "nestful",
    "restbench",
    "tau",
    "toollinkos",
    "workbench",
    "livemcpbench",
)
# A tenant has learned so many capabilities; None: half of those that the set has.
SIZES = (3, 10, 40, None)
# Tools of servers that a tenant has and no capability of its calls, for each tool that one does.
OTHER_TOOLS = 2
ASKED_MOST = 120
# Of the requests for the same calls at most half, and so many, were learned from; the others are asked.
INTENTS_LEARNED = 16
REQUESTS_MOST = 2_500
TOOLS_MOST = 600


@dataclass(frozen=True, slots=True)
class Tenant:
    """What it learned, each for intents with the same calls, the tools that there are, and what it is asked.

    An intent comes with the calls that it meant, which may be those of no capability.
    """

    tools: tuple[Document, ...]
    learned: tuple[tuple[Request, ...], ...]
    asked: tuple[Request, ...]


def tenants(folder: Path, name: str, seed: int) -> Iterator[Tenant]:
    """One of each size; half of what they are asked means something that they learned, as far as there is."""
    drawn = random.Random(f"{name} {seed}")
    requests = _once_each(requests_of(folder, name))
    if len(requests) > REQUESTS_MOST:
        requests = drawn.sample(requests, REQUESTS_MOST)
    by_calls: dict[tuple[str, ...], list[Request]] = {}
    for request in requests:
        by_calls.setdefault(request.tools, []).append(request)
    documents = documents_of(folder, name)
    for size in SIZES:
        yield _tenant(documents, by_calls, size or len(by_calls) // 2, drawn)


def asked_of(tenant: Tenant, embedding: Embedding, most: int) -> list[Meant]:
    """The evidence of each intent, and which capability it meant, where each knows so many at most."""
    index = DiscoveryIndex(embedding)
    index.put(tenant.tools)
    candidates = [
        Candidate(f"cap_{number:05}", _kept([each.intent for each in requests[:most]]), requests[0].tools)
        for number, requests in enumerate(tenant.learned)
    ]
    index.put(
        capability_document(each.id, each.intents[0], each.intents[0], tools=each.tools)
        for each in candidates
    )
    index.remember([Past(intent, each.tools) for each in candidates for intent in each.intents])
    return [
        Meant(
            evidence(index, candidates, request.intent),
            np.array([each.tools == request.tools for each in candidates]),
        )
        for request in tenant.asked
    ]


def _tenant(
    documents: Sequence[Document],
    by_calls: dict[tuple[str, ...], list[Request]],
    size: int,
    drawn: random.Random,
) -> Tenant:
    calls = sorted(by_calls)
    # Half of them were asked for more than once, else a small tenant is asked nothing that it learned.
    repeated = [each for each in calls if len(by_calls[each]) > 1]
    chosen = drawn.sample(repeated, min(len(repeated), (size + 1) // 2))
    rest = [each for each in calls if each not in chosen]
    chosen += drawn.sample(rest, min(len(rest), size - len(chosen)))
    shuffled = {each: drawn.sample(by_calls[each], len(by_calls[each])) for each in chosen}
    known = {
        each: shuffled[each][: min(INTENTS_LEARNED, max(1, len(shuffled[each]) // 2))] for each in chosen
    }
    fits = [request for each in chosen for request in shuffled[each][len(known[each]) :]]
    others = [request for each in calls if each not in shuffled for request in by_calls[each]]
    fits = drawn.sample(fits, min(len(fits), ASKED_MOST // 2))
    others = drawn.sample(others, min(len(others), max(len(fits), ASKED_MOST // 4)))
    return Tenant(
        _tools(documents, {tool for each in chosen for tool in each}, drawn),
        tuple(tuple(known[each]) for each in chosen),
        (*fits, *others),
    )


def _tools(documents: Sequence[Document], called: set[str], drawn: random.Random) -> tuple[Document, ...]:
    own = [document for document in documents if document.id in called]
    others = [document for document in documents if document.id not in called]
    most = min(len(others), OTHER_TOOLS * len(own), TOOLS_MOST)
    return (*own, *drawn.sample(others, most))


def _kept(intents: Sequence[str]) -> tuple[str, ...]:
    """As the projection keeps them, one good run after another."""
    first, others = intents[0], tuple[str, ...]()
    for intent in intents[1:]:
        others = with_intent(first, others, intent)
    return first, *others


def _once_each(requests: Sequence[Request]) -> list[Request]:
    """Without those whose words were there before: the same words are no evidence of likeness."""
    return list({request.intent: request for request in requests}.values())

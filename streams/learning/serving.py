"""What serves predictions: the promoted model of a tenant, or what was counted of its latest runs."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog

from pml.clickhouse.client import Store
from pml.clickhouse.training.session_values import Stretch, read_session_values
from pml.processors.capabilities.provides import ToolSchemas
from pml.processors.discovery.library import Library
from pml.processors.learning.argument_patterns import pattern_of
from pml.processors.learning.feasibility import Feasible, feasibility
from pml.processors.learning.holdings import Holdings
from pml.processors.learning.known_sessions import KnownSession, as_sequences, learned_sources
from pml.processors.learning.model import NextModel, fitted
from pml.processors.learning.predict_answer import Filled, Question, predict_answer
from pml.processors.learning.scene import Past
from pml.processors.learning.tool_hypergraph import DeclaredTools, ToolHypergraph
from pml.processors.memory.embedding import Embedding
from pml.processors.workflow.definitions import safe_text
from pml.schemas.errors import PMLError, StoreUnavailable
from pml.schemas.prediction import PredictAnswer, PredictRequest
from pml.streams.connection import store_url
from pml.streams.learning.artefacts import load
from pml.streams.settings import Settings

# A tenant's model and what it knows of arguments take some megabytes; who asked longest ago makes room.
TENANTS_MAX = 8
# Without a model the tenant's own latest runs are counted, for up to half a second of one core. It may
# take this share of its time, so what is counted is older the more there is of it; but never older than a
# minute, however long a busy machine took for the first look, which compiles and connects.
COUNTED_RUNS = 300
COUNTING_SHARE = 0.01
COUNTED_AGAIN_MOST_S = 60.0
# While there was nothing to count: who has just begun waits ten times what a look takes, not a hundred times.
LOOKING_SHARE = 0.1
COUNTED_AGAIN_S = 1.0
COUNTING = "discounting"
LOADED_AGAIN_S = 10.0
STORE_TIMEOUT_S = 10

Schemas = Mapping[str, Mapping[str, Any]]
log = structlog.get_logger("pml.bridge")


@dataclass(frozen=True, slots=True)
class Known:
    """What the catalog says for a tenant: the promoted model, and the schemas of what tools take."""

    tenant: str
    promoted: str | None
    schemas: Schemas


@dataclass(slots=True)
class Served:
    """What answers for a tenant: a model by its id, or what is counted, and when again (monotonic time).

    `unfit` is the model that could not be loaded, which is tried again at `load_at_s`. `hash_key` is what
    short values in patterns of arguments are hashed with. `declared` is what its tools need, and of which
    version of the catalog and which model that is.
    """

    model: NextModel | None
    model_id: str = ""
    count_at_s: float = float("-inf")
    unfit: str = ""
    load_at_s: float = float("-inf")
    hash_key: bytes = b""
    declared: tuple[tuple[Library, int, NextModel], DeclaredTools] | None = None


class Serving:
    """Keeps the models of a few tenants at hand. One thread uses it.

    A model that cannot be loaded is passed over for a while: its file may be on its way to this machine.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._tenants: OrderedDict[str, Served] = OrderedDict()
        self._store: Store | None = None

    def served(self, known: Known, embedding: Embedding) -> Served:
        """What answers now; with `model` None there is nothing to predict from.

        Raises:
            StoreUnavailable, QueryError: there is no model, and the store does not answer.
        """
        found = self._tenants.setdefault(known.tenant, Served(None))
        self._tenants.move_to_end(known.tenant)
        if len(self._tenants) > TENANTS_MAX:
            self._tenants.popitem(last=False)
        if known.promoted is not None and self._has(found, known.promoted, embedding):
            return found
        began_s = time.monotonic()
        if found.model_id or began_s >= found.count_at_s:
            found.model, found.model_id, found.count_at_s = None, "", began_s + COUNTED_AGAIN_S
            found.model = self._counted(known, embedding)
            took_s = time.monotonic() - began_s
            share = LOOKING_SHARE if found.model is None else COUNTING_SHARE
            wait_s = min(took_s / share, COUNTED_AGAIN_MOST_S)
            found.count_at_s = time.monotonic() + max(COUNTED_AGAIN_S, wait_s)
        return found

    def _has(self, found: Served, model_id: str, embedding: Embedding) -> bool:
        """Whether the promoted model answers; it is loaded where it does not yet."""
        if found.model_id == model_id:
            return True
        if found.unfit == model_id and time.monotonic() < found.load_at_s:
            return False
        try:
            model, _ = load(self._settings.models_folder, model_id, embedding)
            if model.success is not None:
                found.hash_key = self._settings.installation_key()
            found.model = model
        except PMLError as error:
            found.unfit, found.load_at_s = model_id, time.monotonic() + LOADED_AGAIN_S
            log.error("the promoted model cannot serve; what is counted does", reason=error.message)
            return False
        found.model_id = model_id
        log.info("model loaded", model=model_id, learner=model.learner)
        return True

    def _counted(self, known: Known, embedding: Embedding) -> NextModel | None:
        sessions = self._latest(known.tenant)
        if not any(len(each.elements) > 1 for each in sessions):
            return None
        sources = learned_sources(sessions, known.schemas)
        return fitted(as_sequences(sessions, {}), embedding, seed=0, learner=COUNTING, arguments=sources)

    def _latest(self, tenant: str) -> Sequence[KnownSession]:
        try:
            if self._store is None:
                url, database = store_url(self._settings), self._settings.clickhouse.database
                self._store = Store.connect(url, database, answer_timeout_s=STORE_TIMEOUT_S)
            return read_session_values(self._store, Stretch(tenant, most=COUNTED_RUNS))
        except StoreUnavailable:
            # It may come back at another address.
            if self._store is not None:
                self._store.close()
                self._store = None
            raise


def known_of(library: Library, tenant: str) -> Known:
    """What the catalog says now."""
    promoted = library.model(tenant)
    schemas = {name: tool.input_schema for name, tool in library.tools.items()}
    # One without an id says that none serves: all that were promoted have fallen.
    return Known(tenant, (promoted.model_id or None) if promoted else None, schemas)


def answered(library: Library, tenant: str, request: PredictRequest, served: Served) -> PredictAnswer:
    """What may come next; the model must be there."""
    model = served.model
    assert model is not None
    past = [Past(each.name, each.arguments or {}, each.result) for each in request.past]
    find, holdings = partial(library.find, tenant), Holdings(past, request.request)
    hypergraph = ToolHypergraph(_declared(library, tenant, served), find, partial(library.edges, tenant))

    def fill(name: str) -> Sequence[Filled]:
        guesses = model.arguments.guesses(name, past, request.request, 1) if model.arguments else ()
        # What a tool requires now may be more than when the model was trained.
        needed = {each.name for each in hypergraph.needs(name)}
        return [guess for guess in guesses if needed <= guess.arguments.keys()]

    def succeeds(tool: str, arguments: Mapping[str, Any]) -> float:
        if model.success is None:
            return 1.0
        return model.succeeds(tool, pattern_of(arguments, served.hash_key))

    def feasible(names: Sequence[str]) -> Mapping[str, Feasible]:
        return feasibility(names, hypergraph, holdings.has)

    # The model has learned of texts as the log keeps them; arguments are taken from what was really said.
    logged = request.model_copy(update={"request": safe_text(request.request) or ""})
    question = Question(logged, fill, find, succeeds, feasible)
    return predict_answer(question, model, served.model_id)


def _declared(library: Library, tenant: str, served: Served) -> DeclaredTools:
    """What tools need, made anew where tools or the model are others."""
    model = served.model
    assert model is not None
    of = library, library.version(tenant)[0], model
    if served.declared is None or served.declared[0] != of:
        schemas = {
            name: ToolSchemas(tool.input_schema, tool.output_schema) for name, tool in library.tools.items()
        }
        seen = model.arguments.known.seen if model.arguments else {}
        served.declared = of, DeclaredTools(schemas, seen)
    return served.declared[1]

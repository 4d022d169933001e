"""What serves predictions: the promoted model of a tenant, or what was counted of its latest runs."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import structlog

from pml.processors.capabilities.provides import ToolSchemas
from pml.processors.discovery.library import Library
from pml.processors.learning.argument_patterns import pattern_of
from pml.processors.learning.feasibility import Feasible, feasibility
from pml.processors.learning.holdings import Holdings
from pml.processors.learning.looks import look
from pml.processors.learning.model import NextModel
from pml.processors.learning.predict_answer import Filled, Question, predict_answer
from pml.processors.learning.scene import Past
from pml.processors.learning.tool_hypergraph import DeclaredTools, ToolHypergraph
from pml.processors.learning.traces import Vectors
from pml.processors.memory.embedding import Embedding
from pml.processors.workflow.definitions import safe_text
from pml.schemas.errors import PMLError
from pml.schemas.prediction import PredictAnswer, PredictRequest
from pml.schemas.sanitiser.redaction import redact_text
from pml.streams.learning.artefacts import ModelUnfit, load
from pml.streams.learning.at_hand import AtHand, keep_latest
from pml.streams.learning.counted_runs import TENANTS_WAITING_MAX, CountedRuns, Schemas
from pml.streams.learning.manifests import digest_of, hashed_with, tenant_of
from pml.streams.settings import Settings

LOADED_AGAIN_S = 10.0

log = structlog.get_logger("pml.bridge")


@dataclass(frozen=True, slots=True)
class Known:
    """What the catalog says for a tenant: the promoted model, and the schemas of what tools take."""

    tenant: str
    promoted: str | None
    schemas: Schemas


class Declarations:
    """What tools need, made anew where they are others. One thread uses it: the one that answers."""

    def __init__(self) -> None:
        self._made: tuple[tuple[Library, int], DeclaredTools] | None = None

    def now(self, library: Library, tenant: str, model: NextModel) -> DeclaredTools:
        """By the catalog as it is, and by what the model has seen of inputs; always the same model."""
        of = library, library.version(tenant)[0]
        if self._made is None or self._made[0] != of:
            schemas = {
                name: ToolSchemas(tool.input_schema, tool.output_schema)
                for name, tool in library.tools.items()
            }
            self._made = of, DeclaredTools(schemas, model.arguments.known.seen if model.arguments else {})
        return self._made[1]


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """What answers for a tenant: a model by its id, or what was counted, which has none.

    It goes from the thread that makes it to the one that answers, so it stays as it is: what serves next is
    another one. `hash_key` is what short values in patterns and looks of arguments are hashed with.
    """

    model: NextModel
    model_id: str = ""
    hash_key: bytes = b""
    declarations: Declarations = field(default_factory=Declarations)


@dataclass(frozen=True, slots=True)
class _Unfit:
    """A model that cannot serve, and when it is tried again (monotonic time)."""

    model_id: str
    load_at_s: float


class Serving:
    """Keeps what serves some tenants at hand. One thread makes it (`served`); what is made, any may take.

    A model that cannot be loaded is passed over for a while: its file may be on its way to this machine.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings, self._counts = settings, CountedRuns(settings)
        self._at_hand = AtHand[Served](settings.learning.tenants_at_hand)
        self._unfit: OrderedDict[str, _Unfit] = OrderedDict()

    def ready(self, known: Known) -> Served | None:
        """What answers now, so that nobody waits for what others need, nor for what serves next (`due`).

        Where the promoted model cannot serve, that is what was counted. From any thread.
        """
        found = self._at_hand.get(known.tenant)
        if found is None or found.model_id == (known.promoted or ""):
            return found
        return found if not found.model_id and self._unfit_of(known) is not None else None

    def due(self, known: Known, found: Served) -> bool:
        """Whether it is time to make anew (`served`) what is `ready`. From any thread."""
        if found.model_id:
            return False
        unfit = self._unfit_of(known)
        loads = unfit is not None and time.monotonic() >= unfit.load_at_s
        return loads or self._counts.due(known.tenant)

    def served(self, known: Known, embedding: Embedding) -> Served | None:
        """What answers now; None where there is nothing to predict from.

        Raises:
            StoreUnavailable, QueryError: nothing is at hand, and the store does not answer, or just did not.
            NotCountedYet: what was counted made room for that of others.
        """
        found = None
        if known.promoted is not None:
            found = self._promoted(known.tenant, known.promoted, embedding)
        found = found or self._from_runs(known, embedding)
        if found is None:
            self._at_hand.drop(known.tenant)
        else:
            # Who has nothing at hand makes nobody else's make room.
            self._at_hand.keep(known.tenant, found)
        return found

    def _promoted(self, tenant: str, model_id: str, embedding: Embedding) -> Served | None:
        """The promoted model, loaded where it is not at hand; None where it cannot serve."""
        found, unfit = self._at_hand.get(tenant), self._unfit.get(tenant)
        if found is not None and found.model_id == model_id:
            return found
        if unfit is not None and unfit.model_id == model_id and time.monotonic() < unfit.load_at_s:
            return None
        try:
            return self._loaded(tenant, model_id, embedding)
        except PMLError as error:
            again = _Unfit(model_id, time.monotonic() + LOADED_AGAIN_S)
            keep_latest(self._unfit, tenant, again, TENANTS_WAITING_MAX)
            log.error("the promoted model cannot serve; what is counted does", reason=error.message)
            return None

    def _unfit_of(self, known: Known) -> _Unfit | None:
        """That the promoted model could not serve; None where it could, or nobody has tried."""
        unfit = self._unfit.get(known.tenant)
        return unfit if unfit is not None and unfit.model_id == known.promoted else None

    def _loaded(self, tenant: str, model_id: str, embedding: Embedding) -> Served:
        model, manifest = load(self._settings.models_folder, model_id, embedding)
        if tenant_of(manifest) != tenant:
            raise ModelUnfit(f"{model_id} is another tenant's, whose values it knows: promote one of its own")
        found = as_served(self._settings, model, manifest)
        log.info("model loaded", model=model_id, learner=model.learner)
        return found

    def _from_runs(self, known: Known, embedding: Embedding) -> Served | None:
        """What is counted of the tenant's runs; it serves until there is what was counted next."""
        before = self._at_hand.get(known.tenant)
        if before is not None and before.model_id:
            # It was promoted, and is no longer: nothing of it serves while runs are counted.
            self._at_hand.drop(known.tenant)
            self._counts.at_once(known.tenant)
            before = None
        if self._counts.due(known.tenant):
            return self._counted(known, embedding, before)
        if before is None:
            self._counts.say_again(known.tenant)
        return before

    def _counted(self, known: Known, embedding: Embedding, before: Served | None) -> Served | None:
        try:
            model = self._counts.count(known.tenant, known.schemas, embedding)
        except PMLError as error:
            if before is None:
                raise
            log.warning("runs could not be counted; what was counted before serves", reason=error.message)
            return before
        return None if model is None else Served(model)


def as_served(settings: Settings, model: NextModel, manifest: Mapping[str, Any]) -> Served:
    """A trained model as it answers here.

    Raises:
        ConfigurationError: the installation has no key that values could be hashed with.
        ModelUnfit: the model reads looks, whose short values another installation's key hashed.
    """
    model_id = str(manifest["model_id"])
    hashes = model.success is not None or model.reads_looks
    key = settings.installation_key() if hashes else b""
    if model.reads_looks and hashed_with(manifest) != digest_of(key):
        raise ModelUnfit(
            f"{model_id} reads what short values were hashed to with another installation's key: train it "
            "here, or bring its data_dir/installation.key"
        )
    return Served(model, model_id, key)


def known_of(library: Library, tenant: str) -> Known:
    """What the catalog says now."""
    promoted = library.model(tenant)
    schemas = {name: tool.input_schema for name, tool in library.tools.items()}
    # One without an id says that none serves: all that were promoted have fallen.
    return Known(tenant, (promoted.model_id or None) if promoted else None, schemas)


def answered(library: Library, tenant: str, request: PredictRequest, served: Served) -> PredictAnswer:
    """What may come next."""
    model = served.model
    past = [Past(each.name, each.arguments or {}, each.result, each.context or {}) for each in request.past]
    said = redact_text(request.request)
    find, holdings = partial(library.find, tenant), Holdings(past, said)
    declared = served.declarations.now(library, tenant, model)
    hypergraph = ToolHypergraph(declared, find, partial(library.edges, tenant))

    def fill(name: str) -> Sequence[Filled]:
        guesses = model.arguments.guesses_after(holdings.before(), name, 1) if model.arguments else ()
        # What a tool requires now may be more than when the model was trained.
        needed = {each.name for each in hypergraph.needs(name)}
        return [guess for guess in guesses if needed <= guess.arguments.keys()]

    def succeeds(tool: str, arguments: Mapping[str, Any]) -> float:
        if model.success is None:
            return 1.0
        return model.succeeds(tool, pattern_of(arguments, served.hash_key))

    def feasible(names: Sequence[str]) -> Mapping[str, Feasible]:
        return feasibility(names, hypergraph, holdings.has)

    # The model has learned of texts as the log keeps them; arguments are taken from all but their secrets.
    logged = request.model_copy(update={"request": safe_text(request.request) or ""})
    question = Question(logged, fill, find, succeeds, feasible, _latest_look(request, served))
    return predict_answer(question, model, served.model_id)


def _latest_look(request: PredictRequest, served: Served) -> Vectors | None:
    """What the latest element was called with; None where nobody reads it."""
    if not served.model.reads_looks or not request.past:
        return None
    latest = request.past[-1]
    return look(latest.name, latest.arguments, served.hash_key)

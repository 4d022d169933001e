"""What is done about the calls that a prediction names: begun, planned, or why neither (DESIGN §4).

They meet every condition of a speculation, and are called with nothing that is not written in the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pml.processors.speculation import candidates, planner
from pml.processors.speculation.guard import may_be_early, may_run_early
from pml.processors.speculation.mode import strictest
from pml.processors.speculation.touches import any_overlap
from pml.processors.workflow.arguments import Values
from pml.processors.workflow.calls import Wanted, addresses_of, call_run
from pml.processors.workflow.draft import Draft, Results
from pml.processors.workflow.evolve import unsettled_touches
from pml.processors.workflow.folding import coordinate_of
from pml.processors.workflow.graph import Graph, Node, build
from pml.processors.workflow.inputs import Address
from pml.processors.workflow.learning import threshold_context
from pml.processors.workflow.plans import MARGIN
from pml.processors.workflow.preparation import Prepared, Unprepared, prepare_predicted, started_fields
from pml.processors.workflow.release import find_entry
from pml.processors.workflow.state import Internal, Run, Source, Speculation
from pml.schemas.catalog import SpeculationMode
from pml.schemas.events import PredictionCandidate, PredictionMade, SpeculationPlanned, SpeculationStarted
from pml.schemas.prediction import Feasibility, PredictAnswer, Predicted
from pml.schemas.sanitiser import sanitise_text
from pml.schemas.times import to_rfc3339
from pml.schemas.workflow import Workflow

_NAME_BYTES_MAX = 300
_REASON_BYTES_MAX = 100
_NAMES_MAX = 8
# Of these the first calls run, or their results wait.
_GOES_ON = ("begun", "cached")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a candidate. `calls` are those that can be made now: to begin, or to plan."""

    candidate: Predicted
    outcome: str
    calls: tuple[Prepared, ...] = ()


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What holds for all candidates: the run that completed, the threshold, what writes may change yet."""

    run: Run
    threshold: float
    pending: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Beginning:
    """A call that begins: where it is written down, how sure it is, and the results that it reads."""

    prepared: Prepared
    plan: Address
    confidence: float
    threshold: float
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True)
class News:
    """Results that the prediction at `plan` has not been gone on with yet, by the ids of their calls."""

    plan: Address
    call_ids: frozenset[str]


def act_on(draft: Draft, item: Internal, answer: PredictAnswer) -> None:
    """Tell what may come next, and begin what may be begun of it."""
    run = draft.run(item.run_id)
    circumstances = Circumstances(run, _threshold(draft, run), tuple(_pending(draft)))
    graph = _graph(answer)
    verdicts = tuple(_verdicts(draft, item, answer, circumstances, graph))
    draft.emit(_made(item, answer, circumstances.threshold, verdicts), run)
    for verdict in verdicts:
        for prepared in verdict.calls:
            if verdict.outcome == "begun":
                confidence, threshold = verdict.candidate.confidence, circumstances.threshold
                _begin(draft, run, Beginning(prepared, draft.source.address, confidence, threshold))
            else:
                _plan(draft, run, prepared, verdict, circumstances.threshold)
    going = [verdict.candidate for verdict in verdicts if verdict.outcome in _GOES_ON]
    _go_on(draft, circumstances, going, graph, News(draft.source.address, _waiting(draft)))


def _waiting(draft: Draft) -> frozenset[str]:
    """The calls whose results are there: a capability may begin with them."""
    entries = draft.session.speculations.items()
    return frozenset(call_id for call_id, entry in entries if entry.result is not None)


def _threshold(draft: Draft, run: Run) -> float:
    context = threshold_context(run)
    tenant = draft.session.tenant
    return draft.catalog.threshold(tenant, context.user, context.domain, context.workflow_type).value


def _verdicts(
    draft: Draft,
    item: Internal,
    answer: PredictAnswer,
    circumstances: Circumstances,
    graph: Graph,
) -> Iterator[Verdict]:
    """One a candidate, in their order; what is begun for one leaves less budget for the next."""
    run, threshold = circumstances.run, circumstances.threshold
    overtaken = run.live or len(draft.session.runs) > item.arguments["runs"]
    free, free_modelled = planner.free_budget(draft), planner.free_modelled_budget(draft)
    taken: set[tuple[str, str]] = set()
    for candidate in answer.candidates:
        mine = _tasks_of(graph, candidate)
        mode = _mode(draft, run, mine)
        found = "overtaken" if overtaken else _judged(draft, circumstances, candidate, graph)
        if not isinstance(found, str):
            found = _once(found, taken) or "cached"
        if isinstance(found, str):
            yield Verdict(candidate, found)
        elif mode == "off":
            yield Verdict(candidate, "switched_off")
        elif candidate.confidence < threshold:
            yield Verdict(candidate, "below_threshold", found)
        elif len(found) > (free_modelled if mode == "shadow" else free):
            yield Verdict(candidate, "budget")
        else:
            taken.update(map(_same, found))
            free_modelled -= len(found)
            free -= len(found) if mode == "on" else 0
            yield Verdict(candidate, "begun" if mode == "on" else "planned", found)


def _once(calls: Sequence[Prepared], taken: Collection[tuple[str, str]]) -> tuple[Prepared, ...]:
    """Each call once, the first of those that are one, without those that are taken.

    Two candidates may begin alike: a tool, and a capability that calls it first. And a capability may begin
    with one call twice.
    """
    first: dict[tuple[str, str], Prepared] = {}
    for each in calls:
        first.setdefault(_same(each), each)
    return tuple(each for same, each in first.items() if same not in taken)


def _same(prepared: Prepared) -> tuple[str, str]:
    """What two calls have in common that are one."""
    return prepared.node.tool, prepared.arguments_hash


def _graph(answer: PredictAnswer) -> Graph:
    return build(answer.workflow or Workflow())


def _tasks_of(graph: Graph, candidate: Predicted) -> tuple[Node, ...]:
    return tuple(graph.nodes[name] for name in candidate.tasks if name in graph.nodes)


def _pending(draft: Draft) -> list[str]:
    """What writes that run, or that a live run still has before it, may change."""
    found = unsettled_touches(draft.session)
    for run in draft.runs:
        if run.live and run.graph is not None:
            found += candidates.pending_touches(draft, run, len(run.graph.layers))
    return found


def _mode(draft: Draft, run: Run, nodes: tuple[Node, ...]) -> SpeculationMode:
    tenant = draft.session.tenant
    return strictest((run.speculation, *(draft.catalog.mode_of(tenant, node.tool) for node in nodes)))


def _judged(
    draft: Draft, circumstances: Circumstances, candidate: Predicted, graph: Graph
) -> tuple[Prepared, ...] | str:
    """The calls of a candidate that can be made now, or why there are none."""
    nodes = _tasks_of(graph, candidate)
    if not nodes:
        return sanitise_text(candidate.reason or "no_arguments", _REASON_BYTES_MAX)
    if not all(_may_ever(draft, node) for node in nodes):
        return "not_safe"
    if candidate.confidence < circumstances.threshold - MARGIN:
        return "below_threshold"
    found: list[Prepared] = []
    for node in nodes:
        if not graph.awaited(node.id, {}) and graph.opens(node.id, {}):
            prepared = _callable(draft, circumstances, node, Values({}, {}))
            if isinstance(prepared, str):
                return prepared
            found.append(prepared)
    if not found:
        return "not_taken"
    return tuple(each for each in found if find_entry(draft, circumstances.run, each) is None) or "cached"


def _callable(draft: Draft, circumstances: Circumstances, node: Node, values: Values) -> Prepared | str:
    """A call that may be made now, or why it may not."""
    prepared = prepare_predicted(draft, node, values)
    if isinstance(prepared, Unprepared):
        return prepared.error.code.lower()
    # Its arguments may hold what results said: those do not leave this machine early (condition 5).
    verdict = may_be_early(prepared.granted, from_results=True)
    if not verdict.allowed:
        return verdict.reason
    return "pending_write" if any_overlap(prepared.touches, circumstances.pending) else prepared


def _may_ever(draft: Draft, node: Node) -> bool:
    server = draft.catalog.server_of(node.tool)
    listed = server is not None and server.status == "listed"
    return listed and may_run_early(node.tool, draft.catalog.permissions, server)


def _made(
    item: Internal, answer: PredictAnswer, threshold: float, verdicts: tuple[Verdict, ...]
) -> PredictionMade:
    candidates = tuple(
        PredictionCandidate(
            name=sanitise_text(each.candidate.name, _NAME_BYTES_MAX),
            likelihood=each.candidate.likelihood,
            confidence=each.candidate.confidence,
            outcome=each.outcome,
            task_ids=tuple(prepared.node.id for prepared in each.calls),
            sources=_safe(each.candidate.sources),
            feasibility=_safe_feasibility(each.candidate.feasibility),
        )
        for each in verdicts
    )
    return PredictionMade(
        call_id=item.call_id,
        model=answer.model,
        learner=answer.learner,
        history=tuple(item.arguments["history"]),
        threshold=threshold,
        first=None if answer.first is None else sanitise_text(answer.first, _NAME_BYTES_MAX),
        candidates=candidates,
    )


def deepen(draft: Draft) -> None:
    """A predicted call has its result: what its capability does next with it begins too.

    Not where what came next was that the run was taken up again. Each waiting result is looked at once, when
    it comes, so that what failed is not tried for ever.
    """
    for entry in draft.ready:
        if entry.plan is not None and draft.has(entry.plan) and not draft.run(entry.run_id).live:
            _deepen(draft, entry, entry.plan)


def _deepen(draft: Draft, came: Speculation, plan: Address) -> None:
    run = draft.run(came.run_id)
    circumstances = Circumstances(run, _threshold(draft, run), tuple(_pending(draft)))
    answer = PredictAnswer.model_validate(draft.payload(plan).structured)
    news = News(plan, frozenset({came.call.call_id}))
    _go_on(draft, circumstances, answer.candidates, _graph(answer), news)


def _go_on(
    draft: Draft,
    circumstances: Circumstances,
    candidates: Sequence[Predicted],
    graph: Graph,
    news: News,
) -> None:
    """Begin what those of the candidates that are sure and safe do next with results that have come."""
    for candidate in candidates:
        mine = _tasks_of(graph, candidate)
        deeper = any(node.depends_on for node in mine)
        sure = deeper and candidate.confidence >= circumstances.threshold
        safe = sure and all(_may_ever(draft, node) for node in mine)
        if safe and _mode(draft, circumstances.run, mine) == "on":
            _go_on_with(draft, circumstances, candidate, graph, news)


def _go_on_with(
    draft: Draft, circumstances: Circumstances, candidate: Predicted, graph: Graph, news: News
) -> None:
    """Begin what a candidate does next; what its decisions leave out does not begin.

    A call that two of its tasks make, one of its and one of another candidate, or one that waits from before,
    began once, and its result is that of each of them.
    """
    run, new = circumstances.run, set(news.call_ids)
    entries = draft.session.speculations.values()
    begun = {entry.task_id: entry for entry in entries if entry.plan == news.plan}
    for node in sorted(_tasks_of(graph, candidate), key=lambda node: node.layer):
        sources = None if node.id in begun else _sources(draft, graph, node, begun)
        prepared = None if sources is None else _ready(draft, circumstances, graph, node, sources)
        if sources is None or prepared is None:
            continue
        goes_on = any(source.call_id in new for source in sources)
        same = _same_of(begun.values(), prepared) or find_entry(draft, run, prepared)
        if same is not None:
            begun[node.id] = same
            new |= {same.call.call_id} if goes_on else set()
        elif goes_on and not _is_called(draft, prepared) and planner.has_budget(draft):
            confidence, threshold = candidate.confidence, circumstances.threshold
            _begin(draft, run, Beginning(prepared, news.plan, confidence, threshold, sources))


def _ready(
    draft: Draft, circumstances: Circumstances, graph: Graph, node: Node, sources: Sequence[Source]
) -> Prepared | None:
    """The call of a task whose results are there; None where a decision leaves it out or it may not begin."""
    results = Results(None, draft.payloads, addresses_of(sources))
    if not graph.opens(node.id, results):
        return None
    prepared = _callable(draft, circumstances, node, Values({}, results))
    return prepared if isinstance(prepared, Prepared) else None


def _same_of(entries: Iterable[Speculation], prepared: Prepared) -> Speculation | None:
    same = _same(prepared)
    return next((entry for entry in entries if (entry.tool, entry.call.arguments_hash) == same), None)


def _is_called(draft: Draft, prepared: Prepared) -> bool:
    """Whether a run makes this call just now, having come there itself: nobody would take a second result."""
    same = _same(prepared)
    return any(
        (run.node(task_id).tool, task.call.arguments_hash) == same
        for run in draft.runs
        if run.live
        for task_id, task in run.tasks.items()
        if task.status == "running" and task.call is not None
    )


def _sources(
    draft: Draft, graph: Graph, node: Node, begun: Mapping[str, Speculation]
) -> tuple[Source, ...] | None:
    """The results that it reads or waits for, or that say that it has not to wait for others; None where one
    of them is not there yet, or is too old."""
    there = {
        name: Source(name, entry.call.call_id, entry.result)
        for name, entry in begun.items()
        if entry.result is not None and not entry.stale and entry.expires_ms > draft.now_ms
    }
    awaited = graph.awaited(node.id, Results(None, draft.payloads, addresses_of(there.values())))
    return tuple(there[name] for name in sorted(awaited)) if awaited <= there.keys() else None


def _safe(sources: Mapping[str, str]) -> dict[str, str]:
    return {
        sanitise_text(name, _NAME_BYTES_MAX): sanitise_text(source, _NAME_BYTES_MAX)
        for name, source in sources.items()
    }


def _safe_feasibility(told: Feasibility | None) -> Feasibility | None:
    if told is None:
        return None
    missing, through = (
        tuple(sanitise_text(name, _NAME_BYTES_MAX) for name in names[:_NAMES_MAX])
        for names in (told.missing, told.through)
    )
    return told.model_copy(update={"missing": missing, "through": through})


def _begin(draft: Draft, run: Run, call: Beginning) -> None:
    prepared = call.prepared
    fields = started_fields(draft, prepared)
    started = SpeculationStarted(
        **fields,
        kind="prediction",
        confidence=call.confidence,
        threshold=call.threshold,
        sources=tuple(source.call_id for source in call.sources) or None,
        plan=coordinate_of(call.plan),
        source_tasks=tuple(source.task_id for source in call.sources) or None,
    )
    draft.emit(started, run)
    entry = draft.session.speculations[fields["call_id"]]
    item = Wanted(
        run, prepared.node.id, prepared.node.tool, 1, entry.call, True, entry.sources, plan=entry.plan
    )
    draft.calls.append(call_run(draft.session, item, prepared.arguments))


def _plan(draft: Draft, run: Run, prepared: Prepared, verdict: Verdict, threshold: float) -> None:
    fields = started_fields(draft, prepared)
    planned = SpeculationPlanned(
        task_id=prepared.node.id,
        layer=0,
        tool=prepared.node.tool,
        kind="prediction",
        confidence=verdict.candidate.confidence,
        threshold=threshold,
        arguments_hash=prepared.arguments_hash,
        touches=prepared.touches,
        expires_at=to_rfc3339(draft.now_ms + round(fields["ttl_s"] * 1_000)),
        shadow=verdict.outcome == "planned",
    )
    draft.emit(planned, run)

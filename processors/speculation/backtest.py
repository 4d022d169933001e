"""What another model, threshold or budget would have predicted of sessions that went on (spec story 12.4).

After each run it is asked what comes next, as the pipeline asks; what would have begun is held against the
calls that the next run really made. What nobody can know of the past is said, and not guessed: a call whose
arguments are taken from the result of one that was never made counts as `unknown`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pml.processors.learning.scene import Past
from pml.processors.speculation.budget import Budget
from pml.processors.speculation.played import PlayedCall, PlayedRun
from pml.processors.speculation.played_effects import (
    before_writes,
    may_ever,
    serves_for_ms,
    touched,
    written,
)
from pml.processors.speculation.touches import any_overlap
from pml.processors.workflow.arguments import Resolved, Values, resolve_strictly
from pml.processors.workflow.catalog import Catalog
from pml.processors.workflow.check import check_prediction
from pml.processors.workflow.graph import Graph, Node, build
from pml.schemas.canonical import canonical_json
from pml.schemas.errors import WorkflowInvalid
from pml.schemas.prediction import HISTORY_MOST, VALUES_MOST, PastElement, PredictAnswer, PredictRequest
from pml.schemas.workflow import Workflow

HOUR_MS = 3_600_000
Key = tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for every prediction.

    Attributes:
        threshold: the confidence at which calls begin.
        budget: of each session.
        catalog: which tools there are, and what may run early; its switches are passed over.
        pace_ms: how long a tool takes whose call nobody made then, by tool; what is not there takes until the
            next run begins.
    """

    threshold: float
    budget: Budget
    catalog: Catalog
    pace_ms: Mapping[str, float]


@dataclass(slots=True)
class ToolAccount:
    """What became of the calls of one tool, or of all.

    Attributes:
        calls: that were really made.
        begun: that would have begun because they were predicted; each is a hit or wasted.
        again: that what had been a hit would have served once more.
        saved_ms: that somebody would have waited less: of each hit the time that its tool took, as far as it
            lies before the run that asked for it, from when it could begin. What follows calls of its
            capability begins when they have ended; that it is also asked for later then is not counted.
        wasted_ms: that tools would have taken for nobody.
    """

    calls: int = 0
    begun: int = 0
    hits: int = 0
    again: int = 0
    saved_ms: float = 0.0
    wasted_ms: float = 0.0

    @property
    def wasted(self) -> int:
        """Calls that nobody would have used."""
        return self.begun - self.hits

    def add(self, other: ToolAccount) -> None:
        """Count those of another account, too."""
        for name in ("calls", "begun", "hits", "again", "saved_ms", "wasted_ms"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(slots=True)
class Backtest:
    """What would have come of a stretch.

    Attributes:
        asked: how often it was asked what comes next.
        right: how often the next run was what the model named first.
        withheld: candidates that would not have begun, by reason.
        unknown: calls of which nobody can say with what arguments they would have been made.
    """

    sessions: int = 0
    runs: int = 0
    asked: int = 0
    right: int = 0
    withheld: dict[str, int] = field(default_factory=dict)
    unknown: int = 0
    tools: dict[str, ToolAccount] = field(default_factory=dict)

    def account(self, tool: str) -> ToolAccount:
        """That of a tool."""
        return self.tools.setdefault(tool, ToolAccount())

    @property
    def total(self) -> ToolAccount:
        """That of all tools."""
        found = ToolAccount()
        for account in self.tools.values():
            found.add(account)
        return found


Answer = Callable[[PredictRequest], PredictAnswer]


def backtests(
    sessions: Sequence[Sequence[PlayedRun]],
    answer: Answer,
    terms: Sequence[Terms],
    looked_at: Callable[[], None] = lambda: None,
) -> list[Backtest]:
    """Ask a model about each session, run by run: what would have come of it under each of several terms.

    The model, which takes longest, is asked once for all: what it is asked is what happened then, and not
    what would have begun.

    Args:
        sessions: of each the runs in the order in which they ended.
        answer: the model, as it serves.
        looked_at: called after each session.
    """
    found = [Backtest(sessions=len(sessions)) for _ in terms]
    for session in sessions:
        told: list[_Told] = []
        for each, result in zip(terms, found, strict=True):
            _Session(_Answers(answer, told), each, result).play(session)
        looked_at()
    return found


def best_threshold(found: Mapping[float, ToolAccount], waste_most: float) -> float | None:
    """The threshold that would have saved most time, of those at which at most this share of what begins is
    wasted; the highest of several. None: none of them would have begun anything of use so."""
    fit = {
        threshold: account
        for threshold, account in found.items()
        if account.hits and account.wasted <= waste_most * account.begun
    }
    return max(fit, key=lambda threshold: (fit[threshold].saved_ms, threshold), default=None)


@dataclass(frozen=True, slots=True)
class _Told:
    """An answer of the model, and the calls that it names."""

    answer: PredictAnswer
    graph: Graph

    @classmethod
    def of(cls, answer: PredictAnswer) -> _Told:
        """Of an answer whose calls have no order the pipeline takes nothing."""
        workflow = answer.workflow or Workflow()
        try:
            if answer.workflow is not None:
                check_prediction(workflow)
        except WorkflowInvalid:
            return cls(answer.model_copy(update={"candidates": ()}), build(Workflow()))
        return cls(answer, build(workflow))


@dataclass(slots=True)
class _Answers:
    """The answers of a session in their order: those that are `told` already, then what is asked for anew."""

    answer: Answer
    told: list[_Told]
    given: int = 0

    def next(self, elements: Sequence[Past], request: str) -> _Told:
        """What is answered after these elements."""
        if self.given == len(self.told):
            self.told.append(_Told.of(self.answer(_question(elements, request))))
        self.given += 1
        return self.told[self.given - 1]


@dataclass(frozen=True, slots=True)
class _Begun:
    """A call that would have begun, and how long its result may serve, from its beginning (ms).

    `start_ms`: so long after it was predicted, when what it reads is there.
    """

    tool: str
    arguments: Mapping[str, Any]
    ttl_ms: int
    start_ms: float = 0.0

    @property
    def key(self) -> Key:
        return _key(self.tool, self.arguments)


@dataclass(frozen=True, slots=True)
class _Result:
    """What a call gave early: whose it is, what it touches, until when it may serve (Unix time, ms), what it
    took."""

    tool: str
    touches: tuple[str, ...]
    until_ms: float
    took_ms: float


@dataclass(slots=True)
class _Next:
    """What came after a run that ended at `at_ms`: the calls that the next one made, so much later, and of
    equal ones the `first`; `last`: nothing came.

    What it made after it had written what they touch is not among them: no earlier result serves there.
    """

    at_ms: int
    gap_ms: int
    calls: dict[Key, list[PlayedCall]]
    first: Mapping[Key, PlayedCall]
    last: bool

    @classmethod
    def after(cls, run: PlayedRun, following: PlayedRun | None, catalog: Catalog) -> _Next:
        """Nothing, where no run followed."""
        calls: dict[Key, list[PlayedCall]] = {}
        for call in () if following is None else before_writes(following.calls, catalog):
            calls.setdefault(_key(call.tool, call.arguments), []).append(call)
        gap_ms = 0 if following is None else following.started_ms - run.ended_ms
        first = {key: made[0] for key, made in calls.items()}
        return cls(run.ended_ms, gap_ms, calls, first, following is None)

    def comes_first(self, call: _Begun) -> bool:
        """Whether the run makes this call itself before it could begin: then nobody begins it."""
        return call.start_ms >= self.gap_ms and call.key in self.first

    def taken(self, call: _Begun) -> PlayedCall | None:
        """The real call that would have been served, and nobody else is. What runs still is joined."""
        waiting, age_ms = self.calls.get(call.key), self.gap_ms - call.start_ms
        if not waiting or age_ms <= 0 or (age_ms >= call.ttl_ms and age_ms >= waiting[0].tool_ms):
            return None
        return waiting.pop(0)

    def end_ms(self, call: _Begun) -> float:
        """When it has its result, so long after it was predicted; of what nobody makes no result is known."""
        made = self.first.get(call.key)
        return call.start_ms + (0.0 if made is None else made.tool_ms)


@dataclass(slots=True)
class _Progress:
    """How far a capability came: what its tasks gave, and when (ms after it was predicted); `barred`: the
    tasks about which no decision can be taken, and those behind them."""

    results: dict[str, Any] = field(default_factory=dict)
    ends: dict[str, float] = field(default_factory=dict)
    barred: set[str] = field(default_factory=set)

    def start_ms(self, awaited: Iterable[str]) -> float:
        """When the last of these tasks has ended."""
        return max((self.ends[name] for name in awaited), default=0.0)


@dataclass(slots=True)
class _Session:
    """One session: what it knows so far, and what it has taken of its budget.

    `kept`: results that served once and may again; `waiting`: those that nobody took yet; `served`: the calls
    of the run that comes which were; `results`: what calls gave last.
    """

    answers: _Answers
    terms: Terms
    found: Backtest
    elements: list[Past] = field(default_factory=list)
    kept: dict[Key, _Result] = field(default_factory=dict)
    waiting: dict[Key, _Result] = field(default_factory=dict)
    served: list[PlayedCall] = field(default_factory=list)
    results: dict[Key, Any] = field(default_factory=dict)
    begun: int = 0
    waste_hour: int = -1
    wasted_ms: float = 0.0

    def play(self, runs: Sequence[PlayedRun]) -> None:
        """Every run of it."""
        for place, run in enumerate(runs):
            self.found.runs += 1
            for call in run.calls:
                self.found.account(call.tool).calls += 1
                self.results[_key(call.tool, call.arguments)] = call.result
                if not any(call is other for other in self.served):
                    self._later(call, run.started_ms)
            self.served.clear()
            if run.element is not None:
                self.elements.append(run.element)
            if self.elements:
                self._ask(run, runs[place + 1] if place + 1 < len(runs) else None)
        self._waste_all([*self.waiting], runs[-1].ended_ms if runs else 0)

    def _later(self, call: PlayedCall, now_ms: int) -> None:
        """A result serves later runs, too, until it is too old or what it touches is written."""
        account, key = self.found.account(call.tool), _key(call.tool, call.arguments)
        changes = written(call, self.terms.catalog)
        if changes:
            for gone in _overlapping(self.kept, changes):
                del self.kept[gone]
            self._waste_all(_overlapping(self.waiting, changes), now_ms)
        elif key in self.kept and self.kept[key].until_ms > now_ms:
            account.again += 1
            account.saved_ms += call.tool_ms
        elif key in self.waiting and self.waiting[key].until_ms > now_ms:
            account.hits += 1
            account.saved_ms += call.tool_ms
            self.kept[key] = self.waiting.pop(key)

    def _ask(self, run: PlayedRun, following: PlayedRun | None) -> None:
        if following is not None and following.started_ms <= run.ended_ms:
            self._withhold("overtaken")
            return
        told = self.answers.next(self.elements, run.request)
        self.found.asked += 1
        if following is not None and following.element is not None:
            self.found.right += told.answer.first == following.element.name
        self._act(told.answer, told.graph, _Next.after(run, following, self.terms.catalog))

    def _act(self, answer: PredictAnswer, graph: Graph, coming: _Next) -> None:
        """Begin what may begin, and hold it against what was called; last what goes on with what waits."""
        free = self._free(coming.at_ms)
        old = [key for key, each in self.waiting.items() if each.until_ms <= coming.at_ms]
        self._waste_all(old, coming.at_ms)
        # When each has its result, so long after now: those that wait have it.
        known = dict.fromkeys((key for key, each in self.kept.items() if each.until_ms > coming.at_ms), 0.0)
        known |= dict.fromkeys(self.waiting, 0.0)
        going: list[Sequence[Node]] = []
        for candidate in answer.candidates:
            mine = sorted((graph.nodes[name] for name in candidate.tasks if name in graph.nodes), key=_layer)
            first = self._judged(graph, mine, candidate.confidence, known, free)
            if isinstance(first, str):
                self._withhold(candidate.reason or first)
                going += [mine] if first == "cached" else []
                continue
            free -= len(first)
            known |= {call.key: coming.end_ms(call) for call in first.values()}
            known |= self._settle(graph, mine, first, known, coming)
        for tasks in going:
            began = self._settle(graph, tasks, {}, known, coming, most=free)
            free -= len(began)
            known |= began

    def _judged(
        self,
        graph: Graph,
        nodes: Sequence[Node],
        confidence: float,
        known: Collection[Key],
        free: int,
    ) -> dict[str, _Begun] | str:
        """The calls of a candidate that begin at once, by task; or why none do, as `prediction.made` says."""
        if not nodes:
            return "no_arguments"
        if not all(may_ever(self.terms.catalog, node.tool) for node in nodes):
            return "not_safe"
        if confidence < self.terms.threshold:
            return "below_threshold"
        calls: dict[str, _Begun] = {}
        # Those that wait, those of other candidates, and its own: it may begin with one call twice.
        begun, opened = set(known), False
        for node in nodes:
            if graph.awaited(node.id, {}) or not graph.opens(node.id, {}):
                continue
            call, opened = self._call(node, Values({}, {})), True
            if call is None:
                return "not_safe"
            if call.key not in begun:
                calls[node.id] = call
                begun.add(call.key)
        if not calls:
            return "cached" if opened else "not_taken"
        return "budget" if len(calls) > free else calls

    def _call(self, node: Node, values: Values) -> _Begun | None:
        resolved = resolve_strictly(node.arguments, values)
        if not isinstance(resolved, Resolved):
            return None
        ttl_ms = serves_for_ms(self.terms.catalog, node.tool, resolved.arguments)
        return None if ttl_ms is None else _Begun(node.tool, resolved.arguments, ttl_ms)

    def _settle(
        self,
        graph: Graph,
        nodes: Sequence[Node],
        first: Mapping[str, _Begun],
        known: Mapping[Key, float],
        coming: _Next,
        *,
        most: int | None = None,
    ) -> dict[Key, float]:
        """Hold what begins against what was called; what a call gave lets those behind it begin, too.

        Args:
            first: what begins at once.
            known: what waits, or began for others, and when it has its result.
            most: how many calls may begin behind those that wait; None: all begin later, when others ended.

        Returns:
            What began, and when it has its result.
        """
        progress, later = _Progress(), dict[Key, float]()
        for node in nodes:
            call = first.get(node.id) or self._ready(graph, node, progress)
            if call is None or coming.comes_first(call):
                continue
            if node.id in first or not (call.key in known or call.key in later):
                if node.id not in first and not self._has_room(most, len(later)):
                    continue
                later[call.key] = coming.end_ms(call)
                self._count(call, coming.taken(call), coming)
            gave = self._gave(call.key, coming)
            if gave is not None:
                progress.results[node.id] = gave
                progress.ends[node.id] = later[call.key] if call.key in later else known[call.key]
        return later

    def _has_room(self, most: int | None, begun: int) -> bool:
        """Whether the budget has one more call, behind so many that began behind others."""
        return self.begun < self.terms.budget.calls and (most is None or begun < most)

    def _gave(self, key: Key, coming: _Next) -> Any:
        """The result of a call that waits or began for another task, as far as anybody has seen it."""
        if key in coming.first:
            return coming.first[key].result
        kept = self.kept.get(key)
        return self.results.get(key) if kept is not None and kept.until_ms > coming.at_ms else None

    def _ready(self, graph: Graph, node: Node, progress: _Progress) -> _Begun | None:
        """A call that waits for nothing, or for others of its capability whose results are known; or it joins
        the tasks that are barred."""
        results, barred = progress.results, progress.barred
        awaited = graph.awaited(node.id, results)
        if graph.closes(node.id, results):
            return None
        if awaited & barred:
            barred.add(node.id)
            return None
        if not awaited <= results.keys():
            self.found.unknown += 1
            return None
        if not graph.opens(node.id, results):
            barred.add(node.id)
            return None
        values = Values({}, results)
        call = self._call(node, values)
        if call is None and isinstance(resolve_strictly(node.arguments, values), Resolved):
            self._withhold("not_safe")
        return None if call is None else replace(call, start_ms=progress.start_ms(awaited))

    def _count(self, call: _Begun, served: PlayedCall | None, coming: _Next) -> None:
        account = self.found.account(call.tool)
        account.begun += 1
        self.begun += 1
        left_ms = coming.gap_ms - call.start_ms
        if served is not None:
            self.served.append(served)
            account.hits += 1
            account.saved_ms += min(served.tool_ms, left_ms)
            self.kept[call.key] = self._result(call, served.tool_ms, coming)
            return
        took_ms = self.terms.pace_ms.get(call.tool)
        if not coming.last and took_ms is not None and took_ms <= left_ms:
            self.waiting[call.key] = self._result(call, took_ms, coming)
            return
        # It still runs when somebody comes for something else; or nobody comes, or it begins only then.
        still_runs = not coming.last and left_ms > 0
        self._waste(call.tool, left_ms if still_runs else took_ms or 0.0, coming.at_ms)

    def _result(self, call: _Begun, took_ms: float, coming: _Next) -> _Result:
        touches = touched(self.terms.catalog, call.tool, call.arguments)
        return _Result(call.tool, touches, coming.at_ms + call.start_ms + call.ttl_ms, took_ms)

    def _waste_all(self, keys: Sequence[Key], now_ms: int) -> None:
        """Nobody takes any more what waits under these."""
        for key in keys:
            each = self.waiting.pop(key)
            self._waste(each.tool, each.took_ms, now_ms)

    def _waste(self, tool: str, took_ms: float, now_ms: int) -> None:
        self.found.account(tool).wasted_ms += took_ms
        if now_ms // HOUR_MS != self.waste_hour:
            self.waste_hour, self.wasted_ms = now_ms // HOUR_MS, 0.0
        self.wasted_ms += took_ms

    def _free(self, now_ms: int) -> int:
        """How many calls may begin now (DESIGN §4, condition 6)."""
        budget = self.terms.budget
        wasted_ms = self.wasted_ms if self.waste_hour == now_ms // HOUR_MS else 0.0
        if wasted_ms >= budget.wasted_ms_per_hour:
            return 0
        return max(0, min(budget.concurrent, budget.calls - self.begun))

    def _withhold(self, reason: str) -> None:
        self.found.withheld[reason] = self.found.withheld.get(reason, 0) + 1


def _overlapping(results: Mapping[Key, _Result], written: Sequence[str]) -> list[Key]:
    """Those that what is written may have changed."""
    return [key for key, each in results.items() if any_overlap(each.touches, written)]


def _question(elements: Sequence[Past], request: str) -> PredictRequest:
    past = tuple(
        PastElement(
            name=each.name,
            arguments=dict(each.arguments),
            result=each.result,
            context=dict(each.context) or None,
        )
        for each in elements[-VALUES_MOST:]
    )
    return PredictRequest(
        history=tuple(each.name for each in elements[-HISTORY_MOST:]), request=request, past=past
    )


def _layer(node: Node) -> tuple[int, str]:
    return node.layer, node.id


def _key(tool: str, arguments: Mapping[str, Any]) -> Key:
    return tool, canonical_json(dict(arguments))

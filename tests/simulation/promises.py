"""What DESIGN §4 promises of speculation, checked against the truth: tools, world and definition."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from pml.processors.workflow import Catalog, Session
from pml.processors.workflow.evolve import joined_calls
from pml.processors.workflow.graph import Node
from pml.processors.workflow.state import Run, Speculation
from pml.schemas.calls import CallRun, task_value
from pml.schemas.canonical import value_hash
from pml.schemas.events import Event
from pml.schemas.permissions import Permission
from pml.schemas.workflow import Expression, LiteralValue, Reference
from tests.simulation.ledger import Ledger
from tests.simulation.observer import Life, Observer, Started, occurred_ms
from tests.simulation.tools import Toolbox, ToolFailed, ToolSpec, answer
from tests.simulation.world import Change, Execution, World, covers

Sources = Mapping[str, tuple[str, int, int]]
NO_SOURCES: Sources = {}
EARLY = {"speculation", "joined", "repeat"}
_PATH = re.compile(r"\s*(\w+)\.?([\w]*)\s*")


@dataclass(frozen=True)
class _Told:
    """What `pml:predict` said: its tasks, and the expressions of its decisions, by id."""

    tasks: Mapping[str, Mapping[str, Any]]
    decisions: Mapping[str, str]

    def waited(self, task_id: str) -> list[str]:
        """The tasks that one waits for, ascending: those it names or reads, or whose results decide on it."""
        task = self.tasks[task_id]
        decisions = [self.decisions[each["node"]] for each in task.get("condition") or ()]
        decided = {each.partition(".")[0] for each in decisions if not each.startswith("'")}
        return sorted(_references(task["arguments"]) | decided | set(task.get("depends_on") or ()))


def _references(arguments: Mapping[str, Any]) -> set[str]:
    """The tasks whose results arguments of a prediction are taken from."""
    return {
        argument["expression"].partition(".")[0]
        for argument in arguments.values()
        if argument["type"] != "literal"
    }


@dataclass
class Promises:
    """Looks at each event and each call.

    `snapshots` are the catalogs that decisions were taken with, by when; a decision counts at most
    `snapshots_s` later: its owner may have stood still, or its append have been in doubt.
    """

    observer: Observer
    ledger: Ledger
    world: World
    toolbox: Toolbox
    policy: Any
    snapshots_s: float
    snapshots: list[tuple[float, Catalog]] = field(default_factory=list)
    eligible: Counter[str] = field(default_factory=Counter)
    asked: set[tuple[str, str, str]] = field(default_factory=set)
    declared: dict[str, tuple[float, Event]] = field(default_factory=dict)
    _used: dict[tuple[bytes, int, int], tuple[int, str]] = field(default_factory=dict)
    _seen: dict[tuple[str, str, int], dict[str, Speculation]] = field(default_factory=dict)
    _asked: dict[tuple[bytes, str, str], tuple[float, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.observer.on_event.append(self.look)
        self.observer.on_call.append(self.look_at_call)

    def look(
        self, observer: Observer, life: Life, before: Session | None, event: Event, now_s: float
    ) -> None:
        """One event that counts."""
        if before is None or life.session is None:
            return
        if event.type == "speculation.started":
            self._started_early(life, before, event, now_s)
        elif event.type == "task.started":
            self._asked[event_key(event), event.run_id or "", _task_id(event)] = now_s, occurred_ms(event)
            if event.data.serves is not None:  # type: ignore[attr-defined]
                place = event_key(event), event.epoch, event.data.serves  # type: ignore[attr-defined]
                self._used[place] = occurred_ms(event), event.run_id or ""
            self._called(life, before, event)
        elif event.type == "run.started":
            self._begins(before, event)
        elif event.type == "layer.released":
            self._asked_before(before, event, now_s)
        elif event.type == "speculation.diverged":
            self._diverged(event)
        elif event.type == "task.completed":
            self._completed(life, before, event, now_s)
        elif event.type == "run.completed":
            tasks = event.data.counts.tasks  # type: ignore[attr-defined]
            self.ledger.check("a run completes with its tasks", tasks > 0, lambda: event.id)
        elif event.type == "task.verifying":
            self._asks(event)
        elif event.type == "task.resolved" and event.data.verified_by:
            self._verified(event, now_s)

    def _asks(self, event: Event) -> None:
        """Once for each call that nobody knows of, and not while it may still be at work."""
        data: Any = event.data
        check, place = self.ledger.check, (event.tenant, event.session_id, data.unknown_call_id)
        check("a tool is asked once about an unknown call", place not in self.asked, lambda: event.id)
        self.asked.add(place)

    def _verified(self, event: Event, now_s: float) -> None:
        """What a tool says of an unknown call is so, unless somebody else wrote the same meanwhile."""
        data: Any = event.data
        mine = [change for change in self.world.changes if change.call_id == data.call_id]
        self.declared[data.call_id] = now_s, event
        if data.resolution == "not_done" and mine:
            later = self.world.changes[self.world.changes.index(mine[-1]) + 1 :]
            others = any(change.resource == mine[-1].resource for change in later)
            self.ledger.check("what did not happen has no effect", others, lambda: f"{event.id} {mine}")
        elif data.resolution == "done":
            answer = self.world.executions[data.verified_by][-1].value
            found = isinstance(answer, dict) and answer.get("found") is True
            self.ledger.check("what happened was seen", found, lambda: event.id)

    def look_at_end(self) -> None:
        """A write of which a tool said that it did not happen has not happened since."""
        for call_id, (told_s, event) in self.declared.items():
            made_s = [change.at_s for change in self.world.changes if change.call_id == call_id]
            after = event.data.resolution == "not_done" and any(at_s > told_s for at_s in made_s)
            self.ledger.check("what did not happen does not happen later", not after, lambda e=event: e.id)

    def _begins(self, before: Session, event: Event) -> None:
        """A run that completed without what was predicted before it, and runs still, has shown that it was
        wrong, unless a result that it goes on with was taken since it began, or by a run that still runs."""
        entries, joined = before.speculations, joined_calls(before)
        key = event_key(event)

        def taken(call_id: str, since_ms: int) -> bool:
            found = entries.get(call_id)
            if call_id in joined or found is None:
                return call_id in joined
            used_ms, run_id = self._used.get((key, event.epoch, found.call.started_seq), (-1, ""))
            user = before.runs.get(run_id)
            used = used_ms >= since_ms or (user is not None and user.live)
            return used or any(taken(each.call_id, since_ms) for each in found.sources)

        ended_ms = [run.started_ms for run in before.runs.values() if run.status == "completed"]
        waiting = [
            call_id
            for call_id, entry in entries.items()
            if entry.kind == "prediction" and entry.status == "running" and not entry.served
            if not taken(call_id, entry.call.started_ms)
            if entry.call.started_ms <= max(ended_ms, default=-1)
        ]
        check = self.ledger.check
        check("what was predicted wrongly does not run on", not waiting, lambda: f"{event.id} {waiting}")

    def look_at_call(self, call: CallRun, started: Started) -> None:
        """The full arguments of a call are those of its definition, resolved as written; never a part."""
        life = self.observer.lives[started.key]
        assert life.session is not None
        run = life.session.runs.get(call.run_id)
        if getattr(started.data, "plan", None) is not None and call.task_id == started.data.task_id:
            wanted = self.predicted(started.data, life.session)
            same = wanted == call.arguments or _NOTHING in wanted.values()
            self.ledger.check("predicted arguments are those written down", same, lambda: call.call_id)
            return
        if run is None or run.graph is None or not run.live or call.task_id not in run.graph.nodes:
            return
        if call.speculative and call.call_id not in life.session.speculations:
            return  # it came late: what it was for has ended
        shadow = self.policy.speculation_mode == "shadow"
        self.ledger.check(
            "shadow mode calls nothing", not (shadow and call.speculative), lambda: call.call_id
        )
        sources = self._sources(life.session, started.data)
        wanted, missing = self.resolved(started.key, run, run.graph.nodes[call.task_id], sources)
        check = self.ledger.check
        if call.speculative:
            check("early arguments are whole", not missing, lambda: f"{started.event.id} {missing}")
        if started.event.type == "task.verifying":
            wanted = {name: wanted.get(name) for name in ("path", "text")}
            early = call.speculative or call.effect != "read"
            check("who asks what became of a write reads, in its turn", not early, lambda: call.call_id)
        same = wanted == call.arguments
        check("arguments are those written down", same, lambda: f"{wanted} {call.arguments}")

    # ---- conditions 1 to 6, as a speculation starts

    def _started_early(self, life: Life, before: Session, event: Event, now_s: float) -> None:
        data: Any = event.data
        check, run = self.ledger.check, before.runs[event.run_id or ""]
        spec = self.toolbox.specs[data.tool]
        if data.kind == "prediction":
            # What it knows it has from results: they stay on this machine.
            arguments = self.predicted(data, before)
            missing = {name for name, value in arguments.items() if value is _NOTHING}
            derived, sure = True, run.status in ("completed", "failed") and self.opened(data, before)
        else:
            node = run.graph.nodes[data.task_id] if run.graph else None
            assert node is not None
            arguments, missing = self.resolved(event_key(event), run, node, self._sources(before, data))
            derived, sure = bool(node.references), data.kind != "layer" or certain(run, node)
        check("condition 2: all arguments are known", not missing, lambda: f"{event.id} {missing}")
        granted = any(may_run_early(spec, arguments, catalog, derived) for catalog in self._recent(now_s))
        check("condition 1 and 5: the tool may run early", granted, lambda: f"{event.id} {data.tool}")
        check("condition 1: nothing unsafe runs early", not spec.writes(arguments), lambda: event.id)
        written = self._being_written(before, spec.touches(arguments))
        check("condition 3: nothing unfinished changes what is read", not written, lambda: written)
        check("condition 4: sure to run, or confident enough", sure, lambda: event.id)
        check("condition 4: confidence reaches the threshold", data.confidence >= data.threshold, event.id)
        tenant = before.tenant
        switched_on = any(c.mode_of(tenant, data.tool) == "on" for c in self._recent(now_s))
        check("condition 6: speculation is on", switched_on and run.speculation == "on", lambda: event.id)
        self._within_budget(life)

    def _within_budget(self, life: Life) -> None:
        session, budget, check = life.session, self.policy.budget, self.ledger.check
        assert session is not None
        joined = joined_calls(session)
        running = sum(e.status == "running" and i not in joined for i, e in session.speculations.items())
        check("condition 6: budget of concurrent calls", running <= budget.concurrent, lambda: running)
        check("condition 6: budget of calls", session.accounts.started <= budget.calls, lambda: running)
        hour = session.last_event_ms // 3_600_000
        wasted_ms = session.accounts.wasted_ms if session.accounts.waste_hour == hour else 0.0
        check("condition 6: budget of waste", wasted_ms < budget.wasted_ms_per_hour, lambda: wasted_ms)

    def _being_written(self, session: Session, reads: tuple[str, ...]) -> list[str]:
        """Unsafe calls of this session that run now, or of which nobody knows, and what they really touch."""
        found: list[str] = []
        open_calls = [
            task.call.call_id
            for run in session.runs.values()
            for task in run.tasks.values()
            if run.live and task.call and task.status == "running" and task.call.effect == "write"
        ]
        for call_id in [*open_calls, *session.doubtful]:
            started = self.observer.calls.get(call_id)
            if started is None or not isinstance(started.data.arguments, dict):
                continue
            touched = self.toolbox.specs[started.data.tool].touches(started.data.arguments)
            if any(covers(a, b) or covers(b, a) for a in touched for b in reads):
                found.append(started.event.id)
        return found

    def _asked_before(self, before: Session, event: Event, now_s: float) -> None:
        """A person was shown all calls that need their word before the first of them could begin."""
        run, key = before.runs[event.run_id or ""], event_key(event)
        if run.graph is None or run.layer >= 0 or run.sandbox or run.graph.options.approve == "each":
            return
        place = (event.tenant, event.session_id, event.run_id or "")
        for node in run.graph.nodes.values():
            # What has ended is not called: of a run that is taken up again only what is open is asked about.
            unsure = run.task(node.id).ended or node.references or self.resolved(key, run, node)[1]
            if not unsure and not self.approved(node.tool, now_s):
                shown = (*place, node.id) in self.observer.words.shown
                check = self.ledger.check
                check("who is asked is asked before", shown, lambda n=node: f"{event.id} {n.id}")

    def approved(self, tool: str, now_s: float) -> bool:
        """Whether the operator allowed this tool to run unasked, as far as a recent decision could know."""
        return any(_allows(catalog, tool) for catalog in self._recent(now_s))

    def _recent(self, at_s: float) -> list[Catalog]:
        """The catalogs that a decision which counts at this time may have been taken with."""
        since_s = at_s - self.snapshots_s
        older = [catalog for seen_s, catalog in self.snapshots if seen_s < since_s][-1:]
        return older + [catalog for seen_s, catalog in self.snapshots if since_s <= seen_s <= at_s]

    # ---- the cache

    def _called(self, life: Life, before: Session, event: Event) -> None:
        """A real call that finds the same call still running joins it instead (DESIGN §4, Cache).

        Unless that one may take longer than it would wait.
        """
        data: Any = event.data
        run = before.runs[event.run_id or ""]
        if data.served_by != "call" or data.effect != "read" or data.attempt > 1:
            return
        recent = self._recent(self.ledger.loop.time())
        on = run.speculation == "on" and all(c.mode_of(before.tenant, data.tool) == "on" for c in recent)
        same = [
            entry
            for entry in before.speculations.values()
            if entry.status == "running" and not entry.stale and entry.tool == data.tool
            and (not entry.call.ttl_ms or self._young(entry, data.tool, occurred_ms(event)))
            and entry.call.arguments_hash == data.arguments_hash and entry.call.definition == data.definition
            and entry.call.touches == data.touches and entry.call.timeout_ms <= data.timeout_ms
        ]  # fmt: skip
        if on and data.cacheable:
            self.ledger.check("a real call joins the same call that runs", not same, lambda: event.id)

    def _young(self, entry: Any, tool: str, at_ms: int) -> bool:
        """Whether a call that runs is no older than it was, and since is, allowed to be."""
        recent = [ttl_ms(tool, catalog) for catalog in self._recent(self.ledger.loop.time())]
        allowed_ms = min([entry.call.ttl_ms, *(found for found in recent if found is not None)])
        return bool(entry.call.started_ms + allowed_ms > at_ms)

    def _completed(self, life: Life, before: Session, event: Event, now_s: float) -> None:
        data: Any = event.data
        check = self.ledger.check
        ref = data.result_ref
        outcome = self.observer.outcome_at((ref.topic, ref.partition, ref.offset))
        value = task_value(outcome.result) if outcome.result else None
        same = data.result_hash == value_hash(value, self.observer.hash_key)
        check("a result is the one at its coordinate", same, lambda: event.id)
        of_session = (outcome.tenant, outcome.session_id) == (event.tenant, event.session_id)
        check("a result never crosses sessions", of_session, lambda: event.id)
        self._count_eligible(before, event)
        structured = outcome.result.structured if outcome.result else None
        ran = [e for e in self.world.executions.get(outcome.call_id, []) if e.value == structured]
        check("a result is what the tool said", bool(ran), lambda: f"{event.id} {structured}")
        if ran and data.served_by in EARLY:
            self._served(before, event, ran[-1], now_s)

    def _served(self, before: Session, event: Event, execution: Execution, now_s: float) -> None:
        """What was served early is what the tool would have answered now, or nearly (DESIGN §4)."""
        data: Any = event.data
        run, key = before.runs[event.run_id or ""], event_key(event)
        spec = self.toolbox.specs[data.tool]
        assert run.graph is not None
        arguments = self.resolved(key, run, run.graph.nodes[data.task_id])[0]
        touched = spec.touches(arguments)
        changes = self.world.since(execution.change, touched)
        asked_s, asked_ms = self._asked[key, run.run_id, data.task_id]
        own = [c for c in changes if c.at_s < asked_s and self._is_of(c, event)]
        check = self.ledger.check
        check("served values follow this session's last write", not own, lambda: f"{event.id} {own}")
        check("what changes by itself is never served early", spec.kind != "clock", lambda: event.id)
        entries = [catalog.permissions.tools.get(spec.name) for catalog in self._recent(now_s)]
        shared = all(entry is not None and entry.shared for entry in entries)
        fresh = data.call_id == execution.call_id or not shared
        check("what others share is joined and never kept", fresh, lambda: event.id)
        if not changes:
            expected = expectation(spec, arguments, self.world)
            check(
                "served values are what the tool would answer",
                expected == execution.value,
                lambda: f"{event.id} was served {execution.value}, the tool says {expected}",
            )
        age_ms = asked_ms - occurred_ms(self.observer.calls[execution.call_id].event)
        ttls = [found for c in self._recent(now_s) if (found := ttl_ms(spec.name, c)) is not None]
        young = age_ms < max(ttls) or any(entry is not None and entry.shared for entry in entries)
        check("served values are younger than their TTL", young, lambda: f"{event.id} {age_ms}")

    def _is_of(self, change: Change, event: Event) -> bool:
        """Whether this session changed it, in this life: what an earlier one still has on its way is gone."""
        started = self.observer.calls.get(change.call_id)
        same_life = started is not None and started.event.epoch == event.epoch
        return same_life and change.who == event_key(event).decode()

    def _count_eligible(self, before: Session, event: Event) -> None:
        """Calls that could have run early, and those of them that did: a report without it proves nothing."""
        data: Any = event.data
        run = before.runs[event.run_id or ""]
        spec = self.toolbox.specs[data.tool]
        if data.early is None:
            return
        # Arguments that are past their retention are not in the event: nothing can be said of them then.
        writes = isinstance(data.arguments, dict) and spec.writes(data.arguments)
        reads = not writes and run.speculation == "on" and data.layer > 0
        self.ledger.check("what counts as eligible may run early", reads, lambda: event.id)
        begun = run.task(data.task_id).speculated
        self.ledger.check("what counts as speculated was", begun == (data.early == "speculated"), event.id)
        self.eligible["eligible"] += 1
        self.eligible["speculated"] += data.early == "speculated"
        self.eligible[f"served by {data.served_by}"] += 1

    def _diverged(self, event: Event) -> None:
        """A hit that was called again gave something else: somebody outside changed what it read."""
        data: Any = event.data
        read = self.toolbox.specs[data.tool].root
        others = [change for change in self.world.changes if covers(read, change.resource)]
        self.ledger.check("hits differ only where the world changed", bool(others), lambda: event.id)

    # ---- the definition

    def resolved(
        self, key: bytes, run: Run, node: Node, sources: Sources = NO_SOURCES
    ) -> tuple[dict[str, Any], set[str]]:
        """The arguments that have a value, resolved here a second time, and the names of those without.

        `sources` are waiting results of tasks that have none of their own yet.
        """
        start = self.observer.commands[key][run.run_id]
        context = {**(start.workflow.context if start.workflow else {}), **start.context}
        tasks = start.workflow.tasks if start.workflow else ()
        written = next(task.arguments for task in tasks if task.id == node.id)
        found = {name: self._value(run, argument, context, sources) for name, argument in written.items()}
        missing = {name for name, value in found.items() if value is _NOTHING}
        return {name: value for name, value in found.items() if name not in missing}, missing

    def predicted(self, data: Any, session: Session) -> dict[str, Any]:
        """The arguments of a predicted call: literals of what `pml:predict` said, or fields of results.

        A result is that of every task that makes the call, whoever began it: another task, another
        prediction, or a run.
        """
        told = self._told(data)
        sources = self._read(told, data, session)
        written = told.tasks[data.task_id]["arguments"]
        return {name: self._written(argument, sources) for name, argument in written.items()}

    def opened(self, data: Any, session: Session) -> bool:
        """Whether what a predicted call reads opens the branches that it lies on."""
        told = self._told(data)
        sources = self._read(told, data, session)
        for condition in told.tasks[data.task_id].get("condition") or ():
            left, _, right = told.decisions[condition["node"]].partition(" == ")
            name, _, field_ = left.partition(".")
            value = left if left.startswith("'") else self._field(sources, name, field_)
            if value is _NOTHING:
                return False
            found = value in (right, right.strip("'"))
            if condition["outcome"] != ("true" if found else "false"):
                return False
        return True

    def _told(self, data: Any) -> _Told:
        outcome = self.observer.outcome_at((data.plan.topic, data.plan.partition, data.plan.offset))
        answer: Any = outcome.result.structured if outcome.result else None
        workflow = answer["workflow"]
        return _Told(
            {task["id"]: task for task in workflow["tasks"]},
            {each["id"]: each["expression"] for each in workflow.get("decisions") or ()},
        )

    def _read(self, told: _Told, data: Any, session: Session) -> Sources:
        """The results that a call was begun with, by task; none that is not of that task.

        What those were begun with may be gone by now: it is remembered from when they began.
        """
        entries = self._seen.setdefault((session.tenant, session.session_id, session.epoch), {})
        entries |= session.speculations
        found = zip(told.waited(data.task_id), data.sources or (), strict=True)
        named = ((name, entries.get(call_id)) for name, call_id in found)
        return {
            name: entry.result
            for name, entry in named
            if entry is not None and entry.result is not None and self._makes(entry, told, name, entries)
        }

    def _makes(self, entry: Speculation, told: _Told, name: str, entries: Mapping[str, Speculation]) -> bool:
        """Whether a call that began early is that of a task."""
        return entry.tool == told.tasks[name]["tool"] and any(
            entry.call.arguments_hash == value_hash(arguments, self.policy.hash_key)
            for arguments in self._possible(told, name, entries)
        )

    def _possible(
        self, told: _Told, name: str, entries: Mapping[str, Speculation]
    ) -> Iterator[dict[str, Any]]:
        """The arguments that a task may have: one for each choice of the calls that make what it reads."""
        written = told.tasks[name]["arguments"]
        read = sorted(_references(written))
        choices = [
            [
                each.result
                for each in entries.values()
                if each.result and self._makes(each, told, one, entries)
            ]
            for one in read
        ]
        for chosen in product(*choices):
            sources = dict(zip(read, chosen, strict=True))
            yield {key: self._written(argument, sources) for key, argument in written.items()}

    def _written(self, argument: dict[str, Any], sources: Sources) -> Any:
        if argument["type"] == "literal":
            return argument["value"]
        name, _, field_ = argument["expression"].partition(".")
        return self._field(sources, name, field_)

    def _field(self, sources: Sources, name: str, field_: str) -> Any:
        if name not in sources:
            return _NOTHING
        result = self.observer.outcome_at(sources[name]).result
        return task_value(result).get(field_, _NOTHING) if result else _NOTHING

    def _sources(self, session: Session, data: Any) -> Sources:
        """The results of other speculations that an early call's arguments were taken from, by task."""
        return {
            entry.task_id: entry.result
            for call_id in getattr(data, "sources", None) or ()
            if (entry := session.speculations.get(call_id)) is not None and entry.result is not None
        }

    def _value(self, run: Run, argument: Any, context: Mapping[str, Any], sources: Sources) -> Any:
        if isinstance(argument, LiteralValue):
            return argument.value
        if isinstance(argument, Expression):
            return self._one_more(run, argument, context, sources)
        if not isinstance(argument, Reference):
            return context.get(argument.parameter_name, _NOTHING)
        for part in argument.expression.split("|"):
            match = _PATH.fullmatch(part)
            assert match is not None, argument.expression
            address = run.task(match.group(1)).result or sources.get(match.group(1))
            if address is None:
                continue
            outcome = self.observer.outcome_at(address)
            value = task_value(outcome.result) if outcome.result else {}
            return value.get(match.group(2), _NOTHING) if match.group(2) else value
        return _NOTHING

    def _one_more(self, run: Run, argument: Expression, context: Mapping[str, Any], sources: Sources) -> Any:
        """The one sum that programs have here."""
        counted = argument.text.removesuffix(" + 1")
        value = self._value(run, Reference(expression=counted), context, sources)
        return value + 1 if isinstance(value, int) else _NOTHING


_NOTHING: Any = object()


def event_key(event: Event) -> bytes:
    """The key of an event's session."""
    return f"{event.tenant}/{event.session_id}".encode()


def _allows(catalog: Catalog, tool: str) -> bool:
    entry = catalog.permissions.tools.get(tool)
    server = catalog.servers.get(tool.partition(":")[0])
    listed = (item for item in server.tools if tool.endswith(f":{item.name}")) if server else ()
    definition = next((item.definition for item in listed), "")
    pinned = entry.definition if entry is not None else None
    return entry is not None and entry.approval == "auto" and pinned in {None, "", definition}


def _task_id(event: Event) -> str:
    data: Any = event.data
    return str(data.task_id)


def certain(run: Run, node: Node) -> bool:
    """Whether a task is sure to run: every branch it stands on is taken, nothing before it failed."""
    for condition in node.conditions:
        taken = run.decisions.get(condition.node)
        assert run.graph is not None
        named = run.graph.outcomes_of(condition.node)
        open_branch = taken == condition.outcome or (
            condition.outcome == "case:default" and taken not in {None, "error", *named}
        )
        if not open_branch:
            return False
    return not any(run.task(name).status in {"failed", "unknown"} for name in node.depends_on)


def may_run_early(spec: ToolSpec, arguments: Mapping[str, Any], catalog: Catalog, derived: bool) -> bool:
    """What an operator would say, asked of the permissions file without the guard.

    `derived`: some arguments come from results of other tasks.
    """
    entry: Permission | None = catalog.permissions.tools.get(spec.name)
    server = catalog.servers.get(spec.server)
    if entry is None or entry.approval != "auto" or server is None or server.status != "listed":
        return False
    listed = next((t for t in server.tools if f"{spec.server}:{t.name}" == spec.name), None)
    if listed is None or (entry.definition and entry.definition != listed.definition):
        return False
    reading = entry.scope in {"minimal", "readonly"} or entry.effect == "read"
    if server.trusted and entry.effect is None and listed.hints.read_only:
        reading = True
    if any(arguments.get(name) not in allowed for name, allowed in entry.when.items()):
        return False
    if not reading or listed.hints.read_only is False or not entry.cacheable:
        return False
    return not (spec.open_world and derived and not entry.speculate_open_world)


def ttl_ms(tool: str, catalog: Catalog) -> int | None:
    """How long a result of a tool may wait; None where nobody allows the tool."""
    entry = catalog.permissions.tools.get(tool)
    if entry is None:
        return None
    return catalog.policy.speculation_ttl_ms if entry.ttl_s is None else round(entry.ttl_s * 1000)


def expectation(spec: ToolSpec, arguments: Mapping[str, Any], world: World) -> Any:
    """What the tool answers to these arguments now."""
    try:
        return answer(spec, arguments, world.values, 0)
    except ToolFailed as error:
        return error

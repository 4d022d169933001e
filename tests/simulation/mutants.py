"""Named mutants: the real code with one rule broken. A simulator that does not find them is blind there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

from pml.processors.speculation import candidates, guard, mode, planner, touches
from pml.processors.workflow import (
    arguments,
    beforehand,
    catalog,
    check,
    evolve_decisions,
    expanding,
    obedience,
    outcomes,
    preparation,
    programs,
    release,
    resolving,
    settling,
    starting,
    state,
)
from pml.schemas.errors import PMLError
from pml.schemas.workflow import Workflow
from pml.streams.bridge.admission import Admission
from pml.streams.bridge.claims import Claims
from pml.streams.bridge.dispatcher import Dispatcher
from pml.streams.bridge.gate import Gate
from pml.streams.bridge.partition import Partition as CallPartition
from pml.streams.bridge.watermark import Watermark
from pml.streams.log import reader, recovery
from pml.streams.log.append import Appender, InDoubt, Overtaken
from pml.streams.orchestrator import calls, slices, takeover
from pml.streams.orchestrator.partition import Partition
from pml.streams.orchestrator.slices import Decider
from pml.streams.orchestrator.write_behind import Pending, WriteBehind
from pml.streams.projections.thresholds import graph, learning
from tests.simulation.mutant import Mutant, Patch
from tests.simulation.prediction_mutants import PREDICTION_MUTANTS

# The package has functions of the same names.
decide = import_module("pml.processors.workflow.decide")
evolve = import_module("pml.processors.workflow.evolve")


# ---- DESIGN §4


def _guard_allows_anything() -> list[Patch]:
    def can_speculate(*_: Any, **__: Any) -> guard.Verdict:
        return guard.Verdict(True)

    return [(guard, "can_speculate", can_speculate)]


def _approval_is_not_asked() -> list[Patch]:
    def grant(tool: str, values: Mapping[str, Any], permissions: Any, server: Any) -> Any:
        found = real(tool, values, permissions, server)
        if isinstance(found, guard.Grant) or found.code != "APPROVAL_REQUIRED":
            return found
        pattern, entry = permissions.find(tool)
        effect = guard._effect(entry, values, guard.ToolHints(), False)
        return guard.Grant(pattern, entry, effect, False, "")

    real = guard.grant
    return [(guard, "grant", grant)]


def _agents_approve() -> list[Patch]:
    return [(obedience, "require_person", lambda command, what: None)]


def _a_yes_is_for_computed_arguments() -> list[Patch]:
    real = evolve_decisions._consents
    return [(evolve_decisions, "_consents", lambda run, computed: real(run, True))]


def _nobody_waits_for_the_word() -> list[Patch]:
    return [(state.Run, "held", property(lambda self: self.waits.pause is not None))]


def _people_are_asked_in_their_turn() -> list[Patch]:
    return [(beforehand, "_asks_before", lambda draft, run: False)]


def _computed_arguments_are_as_read() -> list[Patch]:
    """`n1.size + 1` is taken for `n1.size`."""

    def computed(expression: str, values: Any) -> Any:
        return real(expression.removesuffix(" + 1"), values)

    real = arguments._computed
    return [(arguments, "_computed", computed)]


def _programs_end_without_tasks() -> list[Patch]:
    """The answer of the analysis ends the run that waits for it."""

    def expanded(draft: Any, run_id: str, workflow: Any, parameters: Any, capability_id: str) -> Any:
        return real(draft, run_id, Workflow(), (), capability_id)

    def checked(workflow: Workflow, servers: Any) -> Any:
        return real_check(workflow, servers) if workflow.tasks else None

    real, real_check = programs.expanded, check.checked_graph
    return [(programs, "expanded", expanded), (expanding, "checked_graph", checked)]


def _changed_tools_keep_approval() -> list[Patch]:
    def grant(tool: str, values: Mapping[str, Any], permissions: Any, server: Any) -> Any:
        entries = {n: e.model_copy(update={"definition": None}) for n, e in permissions.tools.items()}
        return real(tool, values, permissions.model_copy(update={"tools": entries}), server)

    real = guard.grant
    return [(guard, "grant", grant)]


def _hints_do_not_narrow() -> list[Patch]:
    return [(guard, "_says_it_writes", lambda hints: False)]


def _effect_ignores_arguments() -> list[Patch]:
    return [(guard, "_matches", lambda when, values: True)]


def _arguments_resolve_in_part() -> list[Patch]:
    def resolve_strictly(written: Any, values: Any) -> Any:
        return arguments._resolve(written, values, required=())

    return [(arguments, "resolve_strictly", resolve_strictly)]


def _pending_writes_are_forgotten() -> list[Patch]:
    return [(candidates, "pending_touches", lambda *_: [])]


def _unknown_writes_are_forgotten() -> list[Patch]:
    def pending_touches(draft: Any, run: Any, layer: int) -> list[str]:
        known = [touch for found in draft.session.doubtful.values() for touch in found]
        return [touch for touch in real(draft, run, layer) if touch not in known]

    real = candidates.pending_touches
    return [(candidates, "pending_touches", pending_touches)]


def _touches_are_the_last_segment() -> list[Patch]:
    return [(touches, "overlap", lambda first, second: first == second)]


def _writes_leave_the_cache() -> list[Patch]:
    return [(evolve, "_without_overlapping", lambda session, written: session)]


def _overtaken_entries_end_silently() -> list[Patch]:
    return [(release, "_overtaken", lambda draft, prepared: [])]


def _open_branches_count_as_taken() -> list[Patch]:
    return [(candidates, "_confidence", lambda draft, run, node, sources: (1.0, "layer"))]


def _thresholds_are_not_asked() -> list[Patch]:
    return [(candidates.Candidate, "confident", property(lambda self: True))]


def _deeper_results_outlive_their_source() -> list[Patch]:
    return [(settling, "_deeper", lambda draft, call_id: [])]


def _nothing_is_open_world() -> list[Patch]:
    return [(guard, "_open_world", lambda permission, hints, trusted: False)]


def _budget_is_endless() -> list[Patch]:
    return [(planner, "has_budget", lambda draft: True)]


def _switch_is_ignored() -> list[Patch]:
    general = property(lambda self: self.policy.speculation_mode)
    return [
        (catalog.Catalog, "general_mode", general),
        (catalog.Catalog, "mode_of", lambda self, tenant, tool: self.policy.speculation_mode),
        (Gate, "open", property(lambda self: True)),
        (Gate, "lets", lambda self, run: True),
    ]


def _shadow_calls() -> list[Patch]:
    def strictest(modes: Any) -> Any:
        return "on" if (found := real(modes)) == "shadow" else found

    real = mode.strictest
    return [(mode, "strictest", strictest)]


def _nobody_gives_way() -> list[Patch]:
    return [(Admission, "give_way", lambda self: [])]


def _early_calls_take_every_slot() -> list[Patch]:
    return [(Admission, "_early_fits", lambda self, lane, ticket: True)]


def _key_without_arguments() -> list[Patch]:
    def same(entry: Any, prepared: Any) -> bool:
        return bool(entry.tool == prepared.node.tool)

    return [(release, "_same_call", same)]


def _results_never_expire() -> list[Patch]:
    def ttl_ms(found: Any, prepared: Any) -> int:
        return real(found, prepared) and 86_400_000

    real = preparation.ttl_ms
    return [(preparation, "ttl_ms", ttl_ms)]


def _anything_is_cached() -> list[Patch]:
    def find(self: Any, tool: str) -> Any:
        found = real(self, tool)
        if found is None:
            return None
        return found[0], found[1].model_copy(update={"cacheable": True, "shared": False})

    real = guard.PermissionFile.find
    return [(guard.PermissionFile, "find", find)]


def _nobody_joins() -> list[Patch]:
    def usable(draft: Any, entry: Any, prepared: Any) -> bool:
        return entry.status == "ready" and real(draft, entry, prepared)

    real = release._usable
    return [(release, "_usable", usable)]


def _waste_is_not_accounted() -> list[Patch]:
    def accounted(accounts: Any, data: Any, time_ms: int) -> Any:
        return accounts if data.fate == "discarded" else real(accounts, data, time_ms)

    real = evolve._accounted
    return [(evolve, "_accounted", accounted)]


def _failed_joins_are_final() -> list[Patch]:
    return [(outcomes, "call_again", lambda draft, run_id, task_id: None)]


# ---- rules 1 to 4


def _void_events_count() -> list[Patch]:
    return [(reader, "counted", lambda record: reader.header(record, reader.OFFSET_HEADER) is not None)]


def _offsets_are_not_compared() -> list[Patch]:
    async def append(self: Any, topic: str, partition: int, base: int, records: Any) -> None:
        await self.send(topic, partition, records)

    return [(Appender, "append", append)]


def _calls_before_the_append() -> list[Patch]:
    async def append(self: Any, part: Any) -> None:
        await calls.send_calls(self.shell, self.number, part.messages)
        await real(self, part)

    real = Partition._append
    return [(Partition, "_append", append)]


def _doubt_counts_as_done() -> list[Patch]:
    async def append(self: Any, part: Any) -> None:
        try:
            await real(self, part)
        except InDoubt:
            return

    real = Partition._append
    return [(Partition, "_append", append)]


def _doubt_is_repeated() -> list[Patch]:
    async def append(self: Any, part: Any) -> None:
        try:
            await real(self, part)
        except (InDoubt, Overtaken):
            part.base = await takeover.KafkaLog(self.shell, self.number).end()
            await real(self, part)

    real = Partition._append
    return [(Partition, "_append", append)]


def _catching_up_sends_nothing() -> list[Patch]:
    async def send_all_calls(*_: Any) -> None:
        return None

    return [(calls, "send_all_calls", send_all_calls)]


def _inputs_are_decided_again() -> list[Patch]:
    async def cut(self: Any, inputs: Any, base: int, handled: Any, snapshot: Any) -> Any:
        return await real(self, inputs, base, {}, snapshot)

    real = Decider.slice
    return [(Decider, "slice", cut)]


def _causes_are_forgotten() -> list[Patch]:
    async def recover(log: Any, folding: Any, marker: Any, stored: Any, end: int) -> None:
        await real(log, folding, marker, stored, end)
        folding.causes = {}

    real = recovery.recover
    return [(recovery, "recover", recover)]


def _late_states_are_trusted() -> list[Patch]:
    return [(recovery, "stale", lambda stored, newest: {})]


def _term_is_not_appended() -> list[Patch]:
    async def take(log: Any, partition: int, owner: str, now_ms: Any) -> int:
        return int(await log.end()) - 1

    return [(recovery, "take", take)]


def _marker_before_states() -> list[Patch]:
    async def write(self: Any) -> None:
        pending = self._pending()
        if pending is None:
            return
        marker = slices.Outgoing(_marker_key(self._partition.number), _write_marker(pending.marker))
        await self._append([marker], pending.term)
        await asyncio.sleep(0.3)
        self._pending = lambda: replace(pending, marker=pending.marker)
        try:
            await real(self)
        finally:
            del self._pending

    from pml.streams.orchestrator.table import marker_key as _marker_key
    from pml.streams.orchestrator.table import write_marker as _write_marker

    real = WriteBehind.write
    return [(WriteBehind, "write", write)]


def _states_are_not_written() -> list[Patch]:
    def records(self: Any, number: int) -> Iterator[Any]:
        return iter(self.definitions.items())

    return [(Pending, "records", records)]


def _commands_are_obeyed_twice() -> list[Patch]:
    return [(starting, "_earlier", lambda session, run_id, command_id: None)]


def _lives_never_end() -> list[Patch]:
    return [(decide, "living", lambda session, source, snapshot: session)]


# ---- rule 6


def _answer_unseen() -> list[Patch]:
    return [(resolving, "verdict", lambda *_: False)]


def _claims_are_not_written() -> list[Patch]:
    async def claim(self: Any, run: Any, call_offset: int) -> bool:
        return True

    return [(Claims, "claim", claim)]


def _claims_are_not_read() -> list[Patch]:
    return [(Claims, "__contains__", lambda self, call_id: False), (Claims, "_remember", lambda *_: None)]


def _overtaken_claims_hold() -> list[Patch]:
    async def claim(self: Any, run: Any, call_offset: int) -> bool:
        async with self._lock:
            try:
                await self._append(run, call_offset)
            except (Overtaken, PMLError):
                return True
            return True

    return [(Claims, "claim", claim)]


def _repeated_calls_run_again() -> list[Patch]:
    def run_call(self: Any, partition: Any, call: Any) -> None:
        partition.take(call)
        self._begin(partition, call)

    return [(Dispatcher, "run_call", run_call)]


def _answers_are_not_remembered() -> list[Patch]:
    return [(CallPartition, "settled", lambda self, call_id: False)]


def _watermark_runs_ahead() -> list[Patch]:
    return [(Watermark, "committable", property(lambda self: self._position))]


def _joined_calls_stay_early() -> list[Patch]:
    return [(Admission, "promote", lambda self, ticket: None)]


def _repeated_lessons_count_again() -> list[Patch]:
    real = learning.walked

    def walked(lesson: Any, rows: Any) -> Any:
        def bare(of: Any) -> Any:
            return {name: row and replace(row, guard={}) for name, row in of.items()}

        return real(lesson, replace(rows, changed=bare(rows.changed), kept=bare(rows.kept)))

    return [(learning, "walked", walked)]


def _what_did_not_run_teaches() -> list[Patch]:
    real = graph.edges_of_run

    def edges_of_run(record: Any, path: Any, find: Any) -> Any:
        return real(record, [task.id for task in record.tasks], find)

    return [(graph, "edges_of_run", edges_of_run)]


BUSY = ("crowd", "inputs", "catalog")
CATALOG, CACHE = ("catalog",), ("cache",)
OWNERS = ("owners", "broker", "storm", "kills", "doubts")

MUTANTS = (
    Mutant("the guard allows anything", "§4, condition 1", BUSY, 20, _guard_allows_anything),
    Mutant("approval by a person is not asked", "§4, condition 1", BUSY, 20, _approval_is_not_asked),
    Mutant("computed arguments are as read", "§6", BUSY, 20, _computed_arguments_are_as_read),
    Mutant("programs end without tasks", "§6", BUSY, 20, _programs_end_without_tasks),
    Mutant("agents approve", "§4, approvals", BUSY, 40, _agents_approve),
    Mutant("a yes is for computed arguments", "§4, approvals", BUSY, 60, _a_yes_is_for_computed_arguments),
    Mutant("nobody waits for the word", "§4, approvals", BUSY, 20, _nobody_waits_for_the_word),
    Mutant("people are asked in their turn", "§4, approvals", BUSY, 20, _people_are_asked_in_their_turn),
    Mutant("changed tools keep approval", "§4, condition 1", CATALOG, 60, _changed_tools_keep_approval),
    Mutant("hints do not narrow", "§4, condition 1", BUSY, 20, _hints_do_not_narrow),
    Mutant("the effect ignores arguments", "§4, condition 1", BUSY, 20, _effect_ignores_arguments),
    Mutant("arguments resolve in part", "§4, condition 2", BUSY, 20, _arguments_resolve_in_part),
    Mutant("pending writes are forgotten", "§4, condition 3", CACHE, 20, _pending_writes_are_forgotten),
    Mutant("unknown writes are forgotten", "§4, condition 3", CACHE, 60, _unknown_writes_are_forgotten),
    Mutant("only equal touches overlap", "§4, condition 3", CACHE, 40, _touches_are_the_last_segment),
    Mutant("writes leave the cache", "§4, cache: invalidation", CACHE, 40, _writes_leave_the_cache),
    Mutant("overtaken entries end silently", "§4, accounts", CACHE, 20, _overtaken_entries_end_silently),
    Mutant("open branches count as taken", "§4, condition 4", BUSY, 20, _open_branches_count_as_taken),
    Mutant("thresholds are not asked", "§4, condition 4", CACHE, 120, _thresholds_are_not_asked),
    Mutant("shadow mode calls", "§4, condition 6", BUSY, 20, _shadow_calls),
    Mutant("deeper results outlive sources", "§4, depth", CACHE, 60, _deeper_results_outlive_their_source),
    Mutant("nothing is open world", "§4, condition 5", BUSY, 40, _nothing_is_open_world),
    Mutant("the budget is endless", "§4, condition 6", BUSY, 40, _budget_is_endless),
    Mutant("the switch is ignored", "§4, condition 6", CATALOG, 20, _switch_is_ignored),
    Mutant("nobody gives way", "§4, condition 6", BUSY, 40, _nobody_gives_way),
    Mutant("early calls take every slot", "§4, condition 6", BUSY, 60, _early_calls_take_every_slot),
    Mutant("the key has no arguments", "§4, cache: key", BUSY, 40, _key_without_arguments),
    Mutant("results never expire", "§4, cache: TTL", BUSY, 40, _results_never_expire),
    Mutant("shared or uncacheable is cached", "§4, cache: cacheable", BUSY, 20, _anything_is_cached),
    Mutant("nobody joins", "§4, cache: join", BUSY, 20, _nobody_joins),
    Mutant("a failed join is final", "§4, cache: join", BUSY, 60, _failed_joins_are_final),
    Mutant("waste is not accounted", "§4, accounts", BUSY, 20, _waste_is_not_accounted),
    Mutant("repeated lessons count again", "§6, tool graph", BUSY, 20, _repeated_lessons_count_again),
    Mutant("what did not run teaches", "§6, tool graph", BUSY, 20, _what_did_not_run_teaches),
    Mutant("void events count", "§2, rule 1", OWNERS, 40, _void_events_count),
    Mutant("offsets are not compared", "§2, rule 3", OWNERS, 40, _offsets_are_not_compared),
    Mutant("calls go before the append", "§2, rule 3", OWNERS, 20, _calls_before_the_append),
    Mutant("a doubt counts as done", "§2, rule 3", OWNERS, 40, _doubt_counts_as_done),
    Mutant("a doubt is repeated", "§2, rule 3", OWNERS, 40, _doubt_is_repeated),
    Mutant("catching up sends no calls", "§2, rule 3", ("doubts",), 40, _catching_up_sends_nothing),
    Mutant("inputs are decided again", "§2, rule 4", OWNERS, 60, _inputs_are_decided_again),
    Mutant("causes are forgotten", "§2, rule 4", OWNERS, 40, _causes_are_forgotten),
    Mutant("late states are trusted", "§2, rule 4", OWNERS, 100, _late_states_are_trusted),
    Mutant("no term is appended", "§2, rule 4", OWNERS, 10, _term_is_not_appended),
    # That folding begins at the smaller of marker and newest term cannot be found missing: an owner takes in
    # nothing past a newer term, so its marker never names more. tests/streams/log/test_recovery.py asks.
    Mutant("the marker goes before the states", "§2, rule 4", OWNERS, 20, _marker_before_states),
    Mutant("states are not written", "§2, rule 4", OWNERS, 20, _states_are_not_written),
    Mutant("commands are obeyed twice", "§2, rule 4", ("inputs", "storm"), 20, _commands_are_obeyed_twice),
    Mutant("lives never end", "§2, rule 4", ("inputs", "crowd"), 40, _lives_never_end),
    Mutant("an answer is not looked at", "§2, rule 6", ("kills", "owners", "storm"), 120, _answer_unseen),
    Mutant("claims are not written", "§2, rule 6", OWNERS, 40, _claims_are_not_written),
    Mutant("claims are not read", "§2, rule 6", OWNERS, 20, _claims_are_not_read),
    Mutant("overtaken claims hold", "§2, rule 6", OWNERS, 20, _overtaken_claims_hold),
    Mutant("repeated calls run again", "§2, rule 6", ("inputs", "storm"), 20, _repeated_calls_run_again),
    Mutant("answers are not remembered", "§2, rule 6", ("inputs", "storm"), 20, _answers_are_not_remembered),
    Mutant("the watermark runs ahead", "§2, rule 6", OWNERS, 20, _watermark_runs_ahead),
    Mutant("joined calls stay early", "§2, rule 6", BUSY, 60, _joined_calls_stay_early),
    *PREDICTION_MUTANTS,
)  # fmt: skip

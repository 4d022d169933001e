"""What goes wrong from outside, by name: unexpected inputs, changing catalogs, clocks, owners, retention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pml.processors.workflow import deadline, deadline_command
from pml.schemas.calls import CallEnded, ToolResult
from pml.schemas.codec import encode
from pml.schemas.commands import Command, RunStart
from pml.schemas.identifiers import session_key
from pml.schemas.workflow import Workflow
from pml.streams.connection import partition_for
from pml.streams.orchestrator.table import marker_key, read_marker, read_stored
from tests.simulation.broker import Draft, Record
from tests.simulation.faust_double import CHANGELOG
from tests.simulation.settings import NUMBERS
from tests.simulation.stage import Stage
from tests.simulation.tools import PATHS
from tests.simulation.world import OUTSIDE, Change

Fault = Callable[[Stage], bool]
EMPTY: dict[str, Any] = {"tasks": [{"id": "n1", "tool": "files:read", "arguments": {"path": "a"}}]}
GARBAGE = (
    b"",
    b"{",
    b"[]",
    b'{"type": "run.start"}',
    b'{"type": "run.start", "command_id": "cmd_bad", "session_id": "s1", "data": {"workflow": 1}}',
    b'{"type": "call.ended", "call_id": 3}',
    b'{"type": "no.such.thing", "command_id": "cmd_none", "version": 7}',
)


def happen(stage: Stage) -> None:
    """One of the plot's events, by its weight."""
    names, weights = list(stage.plot.events), list(stage.plot.events.values())
    name = stage.random.choices(names, weights)[0]
    if FAULTS[name](stage):
        stage.counts[name] += 1
        stage.ledger.note(name)


def copy(record: Record) -> Draft:
    """The same record once more."""
    return Draft(record.key, record.value, record.headers)


def _some_record(stage: Stage, topic: str) -> Record | None:
    records = [r for n in NUMBERS for r in stage.broker.lane((topic, n)).records[-30:]]
    return stage.random.choice(records) if records else None


def _again(topic: str, astray: bool) -> Fault:
    """A record of a topic is sent again, to its partition or to another one."""

    def fault(stage: Stage) -> bool:
        name = getattr(stage.topics, topic)
        record = _some_record(stage, name)
        if record is None:
            return False
        number = (record.partition + 1) % len(NUMBERS) if astray else record.partition
        stage.broker.append((name, number), [copy(record)])
        return True

    return fault


def other_content(stage: Stage) -> bool:
    """The id of a run that is known, with another workflow: to be rejected."""
    found = [(key, run_id) for key, runs in stage.observer.commands.items() for run_id in runs]
    if not found:
        return False
    key, run_id = stage.random.choice(found)
    tenant, session_id = key.decode().split("/")
    data = RunStart(workflow=Workflow.model_validate(EMPTY), context={"other": stage.random.random()})
    command = Command(
        type="run.start",
        command_id=f"cmd_other_{stage.random.randrange(10**9)}",
        tenant=tenant,
        session_id=session_id,
        run_id=run_id,
        data=data,
    )
    stage.broker.append((stage.topics.commands, partition_for(key)), [Draft(key, encode(command))])
    return True


def poison(stage: Stage) -> bool:
    """Something that nobody can read."""
    topic = stage.random.choice([stage.topics.commands, stage.topics.tool_outcomes, stage.topics.tool_calls])
    keys = [None, b"no key", *stage.observer.lives]
    draft = Draft(stage.random.choice(keys), stage.random.choice(GARBAGE))
    stage.broker.append((topic, stage.random.choice(NUMBERS)), [draft])
    return True


def key_mismatch(stage: Stage) -> bool:
    """A command under the key of another session: to be rejected."""
    record = _some_record(stage, stage.topics.commands)
    if record is None or not record.value:
        return False
    key = session_key("local", f"stranger{stage.random.randrange(5)}")
    stage.broker.append((stage.topics.commands, partition_for(key)), [Draft(key, record.value)])
    return True


def nobody(stage: Stage) -> bool:
    """The answer to a call that nobody made."""
    key = stage.random.choice([b"local/nobody", *stage.observer.lives])
    tenant, session_id = key.decode().split("/")
    outcome = CallEnded(
        call_id=f"call_{stage.random.randrange(10**9)}",
        tenant=tenant,
        session_id=session_id,
        status="ok",
        result=ToolResult(structured={"value": "forged"}),
    )
    stage.broker.append((stage.topics.tool_outcomes, partition_for(key)), [Draft(key, encode(outcome))])
    return True


def too_early(stage: Stage) -> bool:
    """A deadline is said to be reached when it is not."""
    found = [
        life.session for life in stage.observer.lives.values() if life.session and deadline(life.session)
    ]
    if not found:
        return False
    session = stage.random.choice(found)
    item = deadline(session)
    assert item is not None
    key = session_key(session.tenant, session.session_id)
    value = encode(deadline_command(session, item))
    stage.broker.append((stage.topics.commands, partition_for(key)), [Draft(key, value)])
    return True


def _publish_soon(stage: Stage) -> bool:
    stage.loop.outside(stage.random.uniform(0.0, 0.4), stage.publish)
    return True


def withdraw(stage: Stage) -> bool:
    """A tool loses its entry, or a person has to approve each call of it."""
    named = [spec for spec in stage.toolbox.specs.values() if spec.entry and spec.entry["approval"] == "auto"]
    spec = stage.random.choice(named)
    entry = stage.random.choice([None, {**(spec.entry or {}), "approval": "hil"}])
    stage.taken_away.setdefault(spec.name, dict(spec.entry or {}))
    stage.toolbox.change(spec.name, entry=entry)
    return _publish_soon(stage)


def give_back(stage: Stage) -> bool:
    """What was withdrawn is allowed again."""
    if not stage.taken_away:
        return False
    name, entry = stage.taken_away.popitem()
    stage.toolbox.change(name, entry=entry)
    return _publish_soon(stage)


def redefine(stage: Stage) -> bool:
    """A server lists a tool with another definition; some entries were approved for the one before."""
    spec = stage.random.choice([spec for spec in stage.toolbox.specs.values() if spec.entry])
    pinned = {**(spec.entry or {}), "definition": spec.definition}
    stage.toolbox.change(spec.name, entry=stage.random.choice([spec.entry, pinned]))
    stage.toolbox.change(spec.name, version=spec.version + 1)
    return _publish_soon(stage)


def change_ttl(stage: Stage) -> bool:
    """Results of a tool may wait longer, or less long."""
    spec = stage.random.choice([spec for spec in stage.toolbox.specs.values() if spec.entry])
    entry = {**(spec.entry or {}), "ttl_s": stage.random.choice([0.5, 2.0, 30.0])}
    stage.toolbox.change(spec.name, entry=entry)
    return _publish_soon(stage)


def switch(stage: Stage) -> bool:
    """Speculation is turned off, or on."""
    stage.switched = "off" if stage.switched == "on" else "on"
    stage.switched_s = stage.loop.time()
    stage.switch(stage.switched)
    return True


def switch_scope(stage: Stage) -> bool:
    """Speculation is turned off, to shadow, or on again, for one tenant, server or tool."""
    spec = stage.random.choice(list(stage.toolbox.specs.values()))
    scope = stage.random.choice([f"server={spec.server}", f"tool={spec.name}", "tenant=other"])
    stage.switch(stage.random.choice(["off", "shadow", "on", "on"]), scope)
    return True


def lose_server(stage: Stage) -> bool:
    """A server cannot be listed any more, or again."""
    names = sorted({spec.server for spec in stage.toolbox.specs.values()})
    stage.toolbox.switch_server(stage.random.choice(names))
    return _publish_soon(stage)


def stand(stage: Stage) -> bool:
    """The broker's clock stands, and goes on later."""
    stage.stands_ms = stage.log_ms()

    def go_on() -> None:
        stage.stands_ms = None

    stage.loop.outside(stage.random.uniform(0.5, 8.0), go_on)
    return True


def jump(stage: Stage) -> bool:
    """The broker's clock is ahead, and is set right later."""
    stage.jump_ms = stage.random.choice([500, 3_000, 20_000])

    def set_right() -> None:
        stage.jump_ms = 0

    stage.loop.outside(stage.random.uniform(0.5, 8.0), set_right)
    return True


def outside(stage: Stage) -> bool:
    """Somebody else changes what tools read."""
    server = stage.random.choice(["files", "store", "counters"])
    resource = f"{server}:{stage.random.choice(PATHS)}"
    value = f"from outside {stage.random.randrange(1000)}"
    stage.world.write(Change(stage.loop.time(), resource, value, OUTSIDE, ""))
    return True


def _to_process(kind: str, action: str) -> Fault:
    def fault(stage: Stage) -> bool:
        living = stage.living(kind)
        if not living:
            return False
        getattr(stage, action)(stage.random.choice(living))
        return True

    return fault


def rebalance(stage: Stage) -> bool:
    """The group distributes its partitions anew."""
    stage.groups[stage.random.choice(list(stage.groups))].shuffle()
    return True


def _late(is_wanted: Callable[[bytes], bool], term_of: Callable[[bytes], int]) -> Fault:
    """What an owner of an older term had on its way to the changelog arrives: its last of a key.

    Within a term nothing is late: an owner in doubt about a write takes the partition under a new one.
    """

    def fault(stage: Stage) -> bool:
        number = stage.random.choice(NUMBERS)
        newest = stage.newest_term(number)
        last: dict[tuple[bytes, int], Record] = {}
        for record in stage.broker.lane((CHANGELOG, number)).records:
            if record.value and record.key and is_wanted(record.key) and term_of(record.value) < newest:
                last[record.key, term_of(record.value)] = record
        if not last:
            return False
        stage.broker.append((CHANGELOG, number), [copy(stage.random.choice(list(last.values())))])
        return True

    return fault


def expire(stage: Stage) -> bool:
    """What was decided long ago is past its retention."""
    number = stage.random.choice(NUMBERS)
    topic = stage.random.choice([stage.topics.commands, stage.topics.tool_outcomes])
    highest = stage.observer.highest.get((topic, number), -1)
    if highest < 0:
        return False
    stage.broker.expire((topic, number), stage.random.randint(0, highest + 1))
    return True


FAULTS: dict[str, Fault] = {
    "command sent again": _again("commands", astray=False),
    "command astray": _again("commands", astray=True),
    "outcome sent again": _again("tool_outcomes", astray=False),
    "outcome astray": _again("tool_outcomes", astray=True),
    "call sent again": _again("tool_calls", astray=False),
    "other content under the same id": other_content,
    "poison": poison,
    "key mismatch": key_mismatch,
    "outcome of nobody": nobody,
    "deadline too early": too_early,
    "permission withdrawn": withdraw,
    "permission given back": give_back,
    "definition changed": redefine,
    "time to live changed": change_ttl,
    "switch": switch,
    "switch of a scope": switch_scope,
    "server unavailable": lose_server,
    "log time stands": stand,
    "log time jumps": jump,
    "world changed outside": outside,
    "orchestrator killed": _to_process("orchestrator", "kill"),
    "bridge killed": _to_process("bridge", "kill"),
    "orchestrator paused": _to_process("orchestrator", "pause"),
    "bridge paused": _to_process("bridge", "pause"),
    "rebalance": rebalance,
    "late state": _late(lambda key: b"/session/" in key[:16], lambda value: read_stored(0, value).term),
    "late marker": _late(
        lambda key: key in {marker_key(number) for number in NUMBERS}, lambda value: read_marker(value).term
    ),
    "payloads expired": expire,
}

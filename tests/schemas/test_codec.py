"""The one door between objects and bytes: what it refuses, and what it says then."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.schemas import codec
from pml.schemas.calls import CallEnded, ToolResult
from pml.schemas.canonical import NotJson
from pml.schemas.codec import (
    Envelope,
    decode_call,
    decode_catalog,
    decode_claim,
    decode_command,
    decode_event,
    decode_lesson,
    decode_outcome,
    encode,
    encode_command,
    open_envelope,
    upcast,
)
from pml.schemas.commands import Command, RunStart
from pml.schemas.errors import PMLError, UndecodableRecord, UnknownMessage

SAMPLES = Path(__file__).parent.parent / "samples"
START: dict[str, Any] = orjson.loads((SAMPLES / "commands" / "run.start.1.json").read_bytes())
DOORS: list[Callable[[bytes | None], Any]] = [
    decode_command,
    decode_event,
    decode_call,
    decode_outcome,
    decode_claim,
    decode_catalog,
    decode_lesson,
]
every_door = pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)


@every_door
@pytest.mark.parametrize(
    "value", [None, b"", b"{", b"\xff\xfe", b"null", b"7", b"[]", b'"text"', b"NaN", b'{"a": 1e999}', b"{}"]
)
def test_what_is_no_message_is_undecodable(door: Callable[[bytes | None], Any], value: bytes | None) -> None:
    with pytest.raises(UndecodableRecord) as caught:
        door(value)
    assert caught.value.code == "UNDECODABLE"


@every_door
@pytest.mark.parametrize("field", ["type", "kind"])
def test_an_unknown_type_is_its_own_error(door: Callable[[bytes | None], Any], field: str) -> None:
    with pytest.raises(PMLError) as caught:
        door(orjson.dumps({"type": "x", "kind": "x", field: "run.dance"}))
    assert caught.value.code == "UNKNOWN_TYPE_OR_VERSION"


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*/*.json")), ids=lambda path: path.stem)
@pytest.mark.parametrize("version", [0, 2, 99, -1])
def test_an_unknown_version_is_its_own_error(path: Path, version: int) -> None:
    folders = ("commands", "events", "tool-calls", "tool-outcomes", "call-claims", "catalog", "lessons")
    door = dict(zip(folders, DOORS, strict=True))[path.parent.name]
    sample = orjson.loads(path.read_bytes()) | {"version": version}
    with pytest.raises(UnknownMessage, match=f"version {version} is not known"):
        door(orjson.dumps(sample))


@pytest.mark.parametrize("version", ["1", 1.5, True, None, [1]])
def test_a_version_is_a_whole_number(version: Any) -> None:
    with pytest.raises(UndecodableRecord, match="whole number"):
        decode_command(orjson.dumps(START | {"version": version}))


def test_upcasters_run_one_after_the_other() -> None:
    steps: dict[tuple[str, int], codec.Upcaster] = {
        ("made.up", 1): lambda fields: {**fields, "path": fields["file"]},
        ("made.up", 2): lambda fields: {name: value for name, value in fields.items() if name != "file"},
        ("other", 3): lambda fields: {},
    }
    old = Envelope("made.up", 1, {"type": "made.up", "file": "a.md"})
    assert upcast(old, 3, steps) == Envelope("made.up", 3, {"type": "made.up", "path": "a.md"})
    assert upcast(old, 1, steps) == old


@pytest.mark.parametrize(("version", "newest"), [(4, 3), (1, 3), (2, 4)])
def test_a_chain_with_a_gap_leads_nowhere(version: int, newest: int) -> None:
    steps: dict[tuple[str, int], codec.Upcaster] = {("made.up", 2): dict}
    with pytest.raises(UnknownMessage, match="upgrade PML"):
        upcast(Envelope("made.up", version, {}), newest, steps)


def test_an_old_version_is_read_as_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    def rename(fields: dict[str, Any]) -> dict[str, Any]:
        data = dict(fields["data"])
        return {**fields, "data": {"context": data.pop("inputs"), **data}}

    monkeypatch.setattr(RunStart, "VERSION", 2)
    monkeypatch.setitem(codec.UPCASTERS, ("run.start", 1), rename)
    old = {"type": "run.start", "command_id": "c", "session_id": "s", "data": {"inputs": {"a": 1}}}
    command = decode_command(orjson.dumps(old))
    assert isinstance(command.data, RunStart)
    assert command.data.context == {"a": 1}


TOO_DEEP = r"nested deeper|not JSON"
SECRET = "hunter2-is-my-secret"


def _planted(value: Any, path: tuple[Any, ...]) -> list[tuple[tuple[Any, ...], Any]]:
    """The value with the secret in the place of each of its parts, one at a time."""
    found: list[tuple[tuple[Any, ...], Any]] = [(path, SECRET), (path, [SECRET]), (path, {"x": [SECRET]})]
    if isinstance(value, dict):
        for name, item in value.items():
            found += [(where, {**value, name: part}) for where, part in _planted(item, (*path, name))]
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += [
                (where, [*value[:index], part, *value[index + 1 :]])
                for where, part in _planted(item, (*path, index))
            ]
    return found


PLANTED = [(path, value) for path, value in _planted(START, ()) if path and path[0] not in {"type", "kind"}]


def test_a_wrong_shape_is_explained_without_its_values() -> None:
    messages = [message for _, value in PLANTED if (message := _complaint(value))]
    assert len(messages) > 50
    assert not [message for message in messages if SECRET in message]


def _complaint(value: Any) -> str:
    """What is said about a command that cannot be read; nothing where it can."""
    try:
        decode_command(orjson.dumps(value))
    except PMLError as error:
        return f"{error.message} {error.details}"
    return ""


def test_a_wrong_shape_says_where() -> None:
    value = START | {"data": {"workflow": {"tasks": [{"id": "n 1", "tool": "a:b"}, {"id": "n2"}]}}}
    with pytest.raises(UndecodableRecord) as caught:
        decode_command(orjson.dumps(value))
    assert "workflow.tasks.0.id: String should match pattern" in caught.value.message
    assert "task n2 needs either `tool` or `capability`" in caught.value.message
    assert caught.value.details == {"errors": 2}


def test_of_many_complaints_three_are_told() -> None:
    tasks = [{"id": "n 1", "tool": "a:b"} for _ in range(9)]
    with pytest.raises(UndecodableRecord, match="; and 6 more"):
        decode_command(orjson.dumps(START | {"data": {"workflow": {"tasks": tasks}}}))


def test_an_unknown_field_of_a_command_is_a_mistake_somebody_wants_to_hear_of() -> None:
    with pytest.raises(UndecodableRecord, match="sesion_id: Extra inputs"):
        decode_command(orjson.dumps(START | {"sesion_id": "s"}))


def test_camel_case_is_read_too() -> None:
    camel = {
        "type": "run.start",
        "commandId": "c",
        "sessionId": "s",
        "runId": "r",
        "data": {
            "workflow": {"workflowType": "t", "tasks": [{"id": "n1", "tool": "a:b", "dependsOn": ["n2"]}]}
        },
    }
    command = decode_command(orjson.dumps(camel))
    assert (command.command_id, command.session_id, command.run_id) == ("c", "s", "r")
    assert isinstance(command.data, RunStart)
    assert command.data.workflow is not None
    assert command.data.workflow.tasks[0].depends_on == ("n2",)


@pytest.mark.parametrize("depth", [255, 400, 1_000, 100_000])
def test_what_could_not_be_written_again_is_refused(depth: int) -> None:
    nested = b"[" * depth + b"]" * depth
    with pytest.raises(UndecodableRecord, match=TOO_DEEP):
        decode_command(
            b'{"type":"run.start","command_id":"c","session_id":"s","data":{"context":{"a":' + nested + b"}}}"
        )
    with pytest.raises(UndecodableRecord, match=TOO_DEEP):
        decode_outcome(
            b'{"type":"call.ended","call_id":"c","tenant":"t","session_id":"s","status":"ok","result":'
            b'{"structured":{"a":' + nested + b"}}}"
        )


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(context=st.dictionaries(st.text(max_size=5), JSON, max_size=3))
def test_values_come_back_as_they_were_sent(context: dict[str, Any]) -> None:
    command = Command(type="run.start", command_id="c", session_id="s", data=RunStart(context=context))
    assert decode_command(encode(command)) == command
    result = ToolResult(structured=context)
    outcome = CallEnded(call_id="c", tenant="t", session_id="s", status="ok", result=result)
    assert decode_outcome(encode(outcome)).result == result


@given(value=st.binary(max_size=60) | JSON.map(orjson.dumps))
def test_no_bytes_fail_in_another_way(value: bytes) -> None:
    for door in DOORS:
        with pytest.raises((UndecodableRecord, UnknownMessage)):
            door(value)


def test_an_envelope_can_be_opened_without_its_data() -> None:
    assert open_envelope(b'{"kind": "tool", "id": "x"}', "kind") == Envelope(
        "tool", 1, {"kind": "tool", "id": "x"}
    )


SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text() | st.binary()
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text() | st.integers(0, 3), inner, max_size=3)
    ),
    max_leaves=8,
)


def command(context: Any, **more: Any) -> Command:
    workflow = {"tasks": [{"id": "n1", "tool": "a:b"}], "context": {"value": context}, **more}
    return Command(
        type="run.start", command_id="c", session_id="s", data=RunStart.model_validate({"workflow": workflow})
    )


def as_json(value: Any) -> Any:
    """The same as JSON says it: tuples are lists."""
    if isinstance(value, dict):
        return {name: as_json(item) for name, item in value.items()}
    return [*map(as_json, value)] if isinstance(value, (list, tuple)) else value


@given(VALUES)
def test_a_command_is_read_as_it_was_written_or_is_not_written(value: Any) -> None:
    with suppress(NotJson):
        data = encode_command(command(value))
        found = decode_command(data).data
        assert isinstance(found, RunStart)
        assert found.workflow is not None
        assert found.workflow.context == {"value": as_json(value)}


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (math.nan, "value is nan"),
        ([None, math.inf], "value[1] is inf"),
        ({"a": (-math.inf,)}, "value.a[0] is -inf"),
    ],
)
def test_a_number_that_is_none_is_not_written_and_its_place_is_told(value: Any, place: str) -> None:
    with pytest.raises(NotJson, match=re.escape(f"$.data.workflow.context.{place}")):
        encode_command(command(value))


@pytest.mark.parametrize("value", [b"x", 2**64, {1: 2}])
def test_what_json_does_not_have_is_not_written(value: Any) -> None:
    with pytest.raises(NotJson, match="a value that JSON does not have"):
        encode_command(command(value))


def test_null_is_written() -> None:
    assert b'"value":null' in encode_command(command(None))


def of_levels(levels: int) -> Command:
    result: Any = {"type": "literal", "value": 1}
    for _ in range(levels):
        result = {"type": "list_of", "items": [result]}
    return command(1, result=result)


@pytest.mark.parametrize("levels", [126, 200, 240, 253])
def test_a_result_that_nobody_could_read_is_not_written(levels: int) -> None:
    """Its lists are tuples, which orjson takes for no levels; pydantic warns of some 250."""
    with pytest.raises(NotJson):
        encode_command(of_levels(levels))
    assert decode_command(encode_command(of_levels(100))) == of_levels(100)

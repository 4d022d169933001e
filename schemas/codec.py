"""The one door between objects and bytes (orjson), with upcasters by type and version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from pml.schemas.calls import CALLS, CLAIMS, OUTCOMES, CallClaim, CallEnded, CallRecord
from pml.schemas.canonical import NotJson, refuse_not_finite
from pml.schemas.catalog import CATALOG, CatalogData, CatalogRecord
from pml.schemas.commands import COMMANDS, Command, CommandData
from pml.schemas.errors import UndecodableRecord, UnknownMessage
from pml.schemas.events import EVENTS, Event, EventData
from pml.schemas.lessons import LESSONS, AnyLesson

M = TypeVar("M")
B = TypeVar("B", bound=BaseModel)
Upcaster = Callable[[dict[str, Any]], dict[str, Any]]

UPCASTERS: dict[tuple[str, int], Upcaster] = {}
"""From (type, version) to the same message one version later; they run one after the other."""


_NO_VALUE = (
    "the command has a value that JSON does not have: bytes, a number beyond 64 bits, a key that is no text, "
    "text that is no Unicode, or more levels than records have; write it as text"
)


def encode(message: BaseModel) -> bytes:
    """The bytes of any message; absent fields are left out."""
    return orjson.dumps(message.model_dump(exclude_none=True))


def encode_command(command: Command) -> bytes:
    """The bytes of a command, which `decode_command` reads; times and what else has a text are texts in it.

    Raises:
        NotJson: it has a value that JSON does not have, or nests deeper than records do.
    """
    try:
        fields = command.model_dump(exclude_none=True, warnings="error")
        data = orjson.dumps(fields)
        orjson.dumps(orjson.loads(data))  # tuples are no levels until they are lists
    except (TypeError, ValueError, RecursionError):  # orjson's, and pydantic's of bytes and of circles
        raise NotJson(_NO_VALUE) from None
    if b"null" in data:
        refuse_not_finite(fields)
    return data


class Envelope(NamedTuple):
    """A message before its data is validated: what a reader may decide by."""

    type: str
    version: int
    fields: dict[str, Any]


def open_envelope(value: bytes | None, type_field: str = "type") -> Envelope:
    """The JSON object in these bytes, its type and version.

    Raises:
        UndecodableRecord: no JSON object, or type and version are not a text and a number.
    """
    try:
        fields = orjson.loads(value or b"")
    except orjson.JSONDecodeError as error:
        raise UndecodableRecord(f"the record is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise UndecodableRecord("the record is JSON but not an object")
    kind, version = fields.get(type_field), fields.get("version", 1)
    if not isinstance(kind, str) or not isinstance(version, int) or isinstance(version, bool):
        raise UndecodableRecord(f"the record needs a text `{type_field}` and a whole number `version`")
    return Envelope(kind, version, fields)


def upcast(
    envelope: Envelope, newest: int, upcasters: Mapping[tuple[str, int], Upcaster] = UPCASTERS
) -> Envelope:
    """The same message in the newest version.

    Raises:
        UnknownMessage: the version is newer than this release, or no upcaster leads on from it.
    """
    while envelope.version < newest:
        step = upcasters.get((envelope.type, envelope.version))
        if step is None:
            break
        envelope = Envelope(envelope.type, envelope.version + 1, step(envelope.fields))
    if envelope.version != newest:
        raise UnknownMessage(
            f"{envelope.type} version {envelope.version} is not known here (newest: {newest}); "
            "upgrade PML, or send a version it knows"
        )
    return envelope


def decode_command(value: bytes | None) -> Command:
    """A command and its data, validated.

    Raises:
        UndecodableRecord, UnknownMessage: as their names say.
    """
    envelope = _shallow(open_envelope(value))
    model: type[CommandData] = _model(COMMANDS, envelope.type)
    fields = dict(upcast(envelope, model.VERSION).fields)
    data = _validate(model, fields.pop("data", {}))
    return _validate(Command, {**fields, "data": data})


def decode_event(value: bytes | None) -> Event:
    """An event of the log and its data.

    Raises:
        UndecodableRecord, UnknownMessage: as their names say.
    """
    return decode_event_fields(value)[0]


def decode_event_fields(value: bytes | None) -> tuple[Event, dict[str, Any]]:
    """An event of the log, and its JSON object in the newest version as it is written.

    Raises:
        UndecodableRecord, UnknownMessage: as their names say.
    """
    envelope = open_envelope(value)
    model: type[EventData] = _model(EVENTS, envelope.type)
    fields = upcast(envelope, model.VERSION).fields
    data = _validate(model, fields.get("data"))
    return _validate(Event, {**fields, "version": model.VERSION, "data": data}), fields


def decode_call(value: bytes | None) -> CallRecord:
    """A record of tool-calls: `call.run` or `call.cancel`."""
    return _decode_plain(value, CALLS)


def decode_outcome(value: bytes | None) -> CallEnded:
    """A record of tool-outcomes."""
    envelope = _shallow(open_envelope(value))
    outcome = _validate(_model(OUTCOMES, envelope.type), upcast(envelope, 1).fields)
    assert isinstance(outcome, CallEnded)
    return outcome


def decode_claim(value: bytes | None) -> CallClaim:
    """A record of call-claims."""
    claim = _decode_plain(value, CLAIMS)
    assert isinstance(claim, CallClaim)
    return claim


def decode_catalog(value: bytes | None) -> CatalogRecord:
    """A record of the catalog."""
    envelope = open_envelope(value, "kind")
    model: type[CatalogData] = _model(CATALOG, envelope.type)
    fields = upcast(envelope, model.VERSION).fields
    return _validate(CatalogRecord, {**fields, "data": _validate(model, fields.get("data"))})


def decode_lesson(value: bytes | None) -> AnyLesson:
    """A record of lessons."""
    envelope = open_envelope(value)
    return _validate(_model(LESSONS, envelope.type), upcast(envelope, 1).fields)


def _decode_plain(value: bytes | None, models: Mapping[str, type[CallRecord]]) -> CallRecord:
    envelope = open_envelope(value)
    return _validate(_model(models, envelope.type), upcast(envelope, 1).fields)


def _shallow(envelope: Envelope) -> Envelope:
    """A message that can be written again: orjson reads 1,024 levels of nesting and writes 254."""
    try:
        orjson.dumps(envelope.fields)
    except orjson.JSONEncodeError:
        raise UndecodableRecord("the record is nested deeper than 254 levels") from None
    return envelope


def _model(models: Mapping[str, type[M]], kind: str) -> type[M]:
    model = models.get(kind)
    if model is None:
        raise UnknownMessage(f"{kind!r} is not known here; known: {', '.join(sorted(models))}")
    return model


def _validate(model: type[B], fields: Any) -> B:
    try:
        # What `model_validate` comes to, without the options that nobody gives: a tenth of decoding an event.
        valid: B = model.__pydantic_validator__.validate_python(fields)
        return valid
    except ValidationError as error:
        raise UndecodableRecord(f"wrong shape: {explain(error)}", errors=error.error_count()) from None


def explain(error: ValidationError, most: int = 3) -> str:
    """The first complaints of a validation, in one line, without the values (they may be secrets)."""
    complaints = [
        f"{'.'.join(map(str, item['loc'])) or 'the message'}: {item['msg']}"
        for item in error.errors(include_url=False, include_input=False)[:most]
    ]
    more = error.error_count() - len(complaints)
    return "; ".join(complaints) + (f"; and {more} more" if more > 0 else "")

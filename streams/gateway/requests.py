"""What requests say: bodies, parameters, how long they may wait."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from starlette.requests import Request

from pml.schemas.base import Json
from pml.schemas.codec import explain
from pml.schemas.commands import Code, CommandData
from pml.schemas.errors import UndecodableRecord, WorkflowInvalid
from pml.schemas.identifiers import is_name
from pml.schemas.workflow import Options

WAIT_MAX_S = 50.0
LIMIT_MAX = 500
# Those of the largest offset that a log can have.
OFFSET_DIGITS = 19
LIMIT = 50
_NUMBER = re.compile(r"\d{1,6}(\.\d{1,3})?\Z")
D = TypeVar("D", bound=CommandData)


class RunRequest(BaseModel):
    """The body of `POST /v1/runs`."""

    model_config = ConfigDict(extra="forbid")

    workflow: dict[str, Json] | None = None
    code: Code | None = None
    options: Options | None = None
    intent: str | None = Field(default=None, max_length=10_000)
    request: str | None = Field(default=None, max_length=10_000)
    context: dict[str, Json] = {}
    session_id: str | None = Field(default=None, max_length=128)
    run_id: str | None = Field(default=None, max_length=128)

    @model_validator(mode="after")
    def _one_of_them(self) -> RunRequest:
        if self.workflow is not None and self.code is not None:
            raise ValueError("give either a workflow or code")
        if self.workflow is None and self.code is None and not self.intent:
            raise ValueError("give a workflow, code, or an intent that a learned capability answers")
        return self


async def json_body(request: Request) -> dict[str, Any]:
    """The JSON object of a body; nothing is an empty one.

    Raises:
        UndecodableRecord: it is none.
    """
    data = await request.body()
    try:
        body = orjson.loads(data) if data else {}
    except orjson.JSONDecodeError as error:
        raise UndecodableRecord(f"the body is no JSON: {error}") from None
    if not isinstance(body, dict):
        raise UndecodableRecord("the body must be a JSON object")
    return body


async def run_request(request: Request) -> RunRequest:
    """What is to be run; an `Idempotency-Key` names the run where the body does not.

    Raises:
        UndecodableRecord: the body or the key has the wrong shape.
    """
    try:
        asked = RunRequest.model_validate(await json_body(request))
    except ValidationError as error:
        raise UndecodableRecord(f"the body is wrong: {explain(error)}") from None
    named = asked.run_id or _named_by_key(request, "run")
    return asked.model_copy(update={"run_id": named})


def command_id(request: Request) -> str | None:
    """The id of a command that an `Idempotency-Key` names; None where there is none.

    Raises:
        UndecodableRecord: the key has the wrong length.
    """
    return _named_by_key(request, "cmd")


def _named_by_key(request: Request, prefix: str) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    if not 0 < len(key) <= 255:
        raise UndecodableRecord("Idempotency-Key must have 1 to 255 characters")
    return f"{prefix}_{blake2b(key.encode(), digest_size=16).hexdigest()}"


async def command_data(request: Request, model: type[D], **fields: Any) -> D:
    """The data of a command: the body and what the path says.

    Raises:
        UndecodableRecord, WorkflowInvalid: the body has the wrong shape.
    """
    body = await json_body(request)
    body.pop("session_id", None)
    try:
        return model.model_validate({**body, **fields})
    except ValidationError as error:
        raise WorkflowInvalid("WORKFLOW_INVALID", f"the body is wrong: {explain(error)}") from None


def wait_s(request: Request) -> float:
    """How long the caller waits for the end: 0 for not at all, at most 50 seconds.

    Raises:
        UndecodableRecord: it is no number of seconds.
    """
    text = request.query_params.get("wait_s", "0")
    if not _NUMBER.match(text) or float(text) > WAIT_MAX_S:
        raise UndecodableRecord(f"wait_s is a number of seconds from 0 to {WAIT_MAX_S:g}")
    return float(text)


def limit(request: Request) -> int:
    """How many items a list may have.

    Raises:
        UndecodableRecord: it is no number, or too large.
    """
    text = request.query_params.get("limit", str(LIMIT))
    found = whole_number(text)
    if found is None or not 1 <= found <= LIMIT_MAX:
        raise UndecodableRecord(f"limit is a number from 1 to {LIMIT_MAX}")
    return found


def whole_number(text: str) -> int | None:
    """A number of decimal digits, as offsets have them; None where it is none, or longer than any offset."""
    # What is a digit elsewhere, such as a superscript, is no number here.
    return int(text) if text.isascii() and text.isdigit() and len(text) <= OFFSET_DIGITS else None


def name_of(request: Request, parameter: str) -> str:
    """A name out of the path.

    Raises:
        UndecodableRecord: it is none.
    """
    text = str(request.path_params[parameter])
    if not is_name(text):
        raise UndecodableRecord(f"{parameter} is 1 to 128 letters, digits or ._:@+-")
    return text

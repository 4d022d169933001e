"""Errors as HTTP tells them: RFC 9457, with the stable code of the error."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import orjson
import structlog
from starlette.responses import Response

from pml.schemas.errors import (
    BrokerUnavailable,
    ConfigurationError,
    PayloadGone,
    PMLError,
    QueryError,
    Refused,
    StoreUnavailable,
    UndecodableRecord,
    WaitedTooLong,
    WorkflowInvalid,
)
from pml.streams.gateway.callers import NotAllowed, NotAuthenticated
from pml.streams.run_history import NoSuchRun


class Unexpected(PMLError):
    """A defect of PML; its details are in the log, not in the answer."""

    code = "INTERNAL"


MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 5
log = structlog.get_logger("pml.gateway")
_STATUS: tuple[tuple[type[PMLError], HTTPStatus], ...] = (
    (NotAuthenticated, HTTPStatus.UNAUTHORIZED),
    (NotAllowed, HTTPStatus.FORBIDDEN),
    (NoSuchRun, HTTPStatus.NOT_FOUND),
    (WorkflowInvalid, HTTPStatus.UNPROCESSABLE_ENTITY),
    (Refused, HTTPStatus.CONFLICT),
    (PayloadGone, HTTPStatus.GONE),
    (WaitedTooLong, HTTPStatus.GATEWAY_TIMEOUT),
    (BrokerUnavailable, HTTPStatus.SERVICE_UNAVAILABLE),
    (StoreUnavailable, HTTPStatus.SERVICE_UNAVAILABLE),
    (UndecodableRecord, HTTPStatus.BAD_REQUEST),
    (QueryError, HTTPStatus.BAD_REQUEST),
    # No request holds a setting: what is wrong there is the server's fault.
    (ConfigurationError, HTTPStatus.INTERNAL_SERVER_ERROR),
)
# What a code says more exactly than the class of its error.
_STATUS_OF_CODE = {
    "BAD_REQUEST": HTTPStatus.BAD_REQUEST,
    "NOT_FOUND": HTTPStatus.NOT_FOUND,
    "NO_SUCH_RUN": HTTPStatus.NOT_FOUND,
    "NO_SUCH_APPROVAL": HTTPStatus.NOT_FOUND,
    "NO_SUCH_TASK": HTTPStatus.NOT_FOUND,
    "TOO_LARGE": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "RATE_LIMITED": HTTPStatus.TOO_MANY_REQUESTS,
    "BUSY": HTTPStatus.SERVICE_UNAVAILABLE,
    "METHOD_NOT_ALLOWED": HTTPStatus.METHOD_NOT_ALLOWED,
    "HOST_NOT_ALLOWED": HTTPStatus.MISDIRECTED_REQUEST,
    "ORIGIN_NOT_ALLOWED": HTTPStatus.FORBIDDEN,
    "NO_SUCH_TOKEN": HTTPStatus.NOT_FOUND,
    "PERSON_NEEDED": HTTPStatus.FORBIDDEN,
    "FOUR_EYES": HTTPStatus.FORBIDDEN,
}


def status_of(error: PMLError) -> HTTPStatus:
    """The status of an error; 500 where no other says it better."""
    if error.code in _STATUS_OF_CODE:
        return _STATUS_OF_CODE[error.code]
    found = (status for kind, status in _STATUS if isinstance(error, kind))
    return next(found, HTTPStatus.INTERNAL_SERVER_ERROR)


def problem(error: PMLError, run_id: str | None = None) -> Response:
    """The answer that tells an error; it never holds a traceback."""
    status = status_of(error)
    if status is HTTPStatus.INTERNAL_SERVER_ERROR:
        error = _for_a_client(error)
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": status.phrase,
        "status": status.value,
        "detail": error.message,
        **error.as_dict(),
        "run_id": run_id or error.details.get("run_id"),
    }
    headers = {}
    if status is HTTPStatus.UNAUTHORIZED:
        headers["www-authenticate"] = 'Bearer realm="pml"'
    if status in {HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS}:
        headers["retry-after"] = str(RETRY_AFTER_S)
    return Response(orjson.dumps(body, default=str), status.value, headers, MEDIA_TYPE)


def _for_a_client(error: PMLError) -> PMLError:
    """The server's own fault: its log has all of it, a client hears nothing of its files."""
    if not isinstance(error, Unexpected):
        log.error("a request failed", code=error.code, reason=error.message, details=error.details)
    if not isinstance(error, ConfigurationError):
        return error
    told = ConfigurationError("the server is set up wrongly; its log says more")
    told.code = error.code
    return told

"""The one tree of errors. A code never changes; a message tells the user what to do."""

from __future__ import annotations

from typing import Any


class PMLError(Exception):
    """An error a user may meet.

    Attributes:
        code: stable, upper snake case; programs match on it.
        message: what happened and what to do about it.
        retryable: whether the same request may succeed later without a change.
        details: JSON-serialisable facts for programs.
    """

    code = "PML_ERROR"
    retryable = False

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    def as_dict(self) -> dict[str, Any]:
        """The error as CONTRACT.md writes it into events and answers."""
        return {
            "code": self.code,
            "message": self.message,
            "retryable": self.retryable,
            "details": self.details,
        }


class ConfigurationError(PMLError):
    """A setting or a configuration file is wrong."""

    code = "CONFIGURATION"


class UsageError(ConfigurationError):
    """An option or an argument of a command is wrong."""

    code = "USAGE"


class SourceError(PMLError):
    """Code that is not of its language; `details` has the line and the column, both from 1."""

    code = "CODE_SYNTAX"


class PrerequisiteError(PMLError):
    """Something this machine needs is missing or could not be fetched."""

    code = "PREREQUISITE"


class BrokerUnavailable(PMLError):
    """Kafka does not answer."""

    code = "BROKER_UNAVAILABLE"
    retryable = True


class BrokerRefused(BrokerUnavailable):
    """Kafka answers, but not to these credentials, certificates or rights."""

    code = "BROKER_REFUSED"
    retryable = False


class StoreUnavailable(PMLError):
    """ClickHouse does not answer."""

    code = "STORE_UNAVAILABLE"
    retryable = True


class QueryError(PMLError):
    """ClickHouse refused a query."""

    code = "QUERY"


class TopicMismatch(PMLError):
    """A topic exists with other partitions or settings than PML needs."""

    code = "TOPIC_MISMATCH"


class UndecodableRecord(PMLError):
    """Bytes that are no valid message: broken JSON or a wrong shape."""

    code = "UNDECODABLE"


class UnknownMessage(PMLError):
    """A message whose type or version this release does not know."""

    code = "UNKNOWN_TYPE_OR_VERSION"


class LogCorrupted(PMLError):
    """Our own log or state cannot be read; the role stops rather than guess."""

    code = "LOG_CORRUPTED"


class Refused(PMLError):
    """A command that is understood and not obeyed."""

    code = "REFUSED"


class WorkflowInvalid(Refused):
    """A workflow that cannot run as it is written."""

    code = "WORKFLOW_INVALID"

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message, **details)
        self.code = code


class WaitedTooLong(PMLError):
    """An answer did not come within the time the caller gave."""

    code = "WAITED_TOO_LONG"
    retryable = True


class PayloadGone(PMLError):
    """A full value is past its retention or is not what was recorded."""

    code = "PAYLOAD_GONE"

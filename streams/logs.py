"""What a process writes to stderr: JSON lines, or colours for a person; floods of libraries are cut."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Mapping, MutableMapping
from typing import Any

import structlog

from pml.schemas.sanitiser import sanitise, sanitise_text
from pml.streams.printable import printable
from pml.streams.settings import LogSettings

# A broker that is away makes the client say so many times a second.
REPEAT_S = 10.0
REMEMBERED_MAX = 256
# A traceback of Faust has a few KB; a line is not where a payload goes.
LINE_BYTES_MAX = 16_384
CHATTY = (
    *("aiokafka", "faust", "mode", "asyncio", "mcp", "httpx", "httpx2", "httpcore", "httpcore2"),
    *("urllib3", "clickhouse_connect"),
)
# Their tracebacks quote what servers answered; the call's error says it without.
QUOTING = ("mcp.client.auth", "mcp.client.streamable_http")


class RateLimit(logging.Filter):
    """Lets a line of a chatty library pass once in ten seconds; lines are the same by their template."""

    def __init__(self) -> None:
        super().__init__()
        self._passed_at: dict[tuple[str, object], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether this line is written."""
        if record.name.partition(".")[0] not in CHATTY:
            return True
        line, now = (record.name, record.msg), time.monotonic()
        if now - self._passed_at.get(line, float("-inf")) < REPEAT_S:
            return False
        if len(self._passed_at) >= REMEMBERED_MAX:
            self._passed_at.clear()
        self._passed_at[line] = now
        return True


def configure_logging(settings: LogSettings, **bound: Any) -> None:
    """Send structlog's and the standard library's lines to stderr in one form, with `bound` in each."""
    shared = _shared_processors()
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(**bound)
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(RateLimit())
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_rendered(settings)],
        )
    )
    logging.basicConfig(level=settings.level.upper(), handlers=[handler], force=True)
    for name in CHATTY:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLevelName(settings.level.upper())))
    for name in QUOTING:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def silence_libraries() -> None:
    """For the command line: what goes wrong is told in one sentence, by us."""
    logging.basicConfig(level=logging.CRITICAL, force=True)
    structlog.configure(logger_factory=structlog.stdlib.LoggerFactory())  # else its lines go to stdout
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _shared_processors() -> list[Any]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
    ]


def without_secrets(logger: Any, method: str, line: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """The line with whatever looks like a secret redacted, and long values cut."""
    return {name: _without_secrets(value) for name, value in line.items()}


def _without_secrets(value: Any) -> Any:
    if isinstance(value, str):
        return sanitise_text(value, LINE_BYTES_MAX)
    return value if isinstance(value, (int, float)) or value is None else sanitise(value)


def _rendered(settings: LogSettings) -> list[Any]:
    for_person = settings.format == "console" or (settings.format == "auto" and sys.stderr.isatty())
    rendered = (
        [_seen, structlog.dev.ConsoleRenderer()] if for_person else [structlog.processors.JSONRenderer()]
    )
    return [structlog.processors.format_exc_info, without_secrets, *rendered]


def _seen(logger: Any, method: str, line: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """The line for a person: with all written out that is not seen."""
    return {name: printable(value) if isinstance(value, str) else value for name, value in line.items()}

"""Every Prometheus metric, defined once (CONTRACT.md, For programs). No run, session or tenant labels."""

from __future__ import annotations

import errno
from collections.abc import Collection, Mapping
from contextlib import suppress
from importlib.metadata import version
from typing import Any

from prometheus_client import Counter, Gauge, Histogram, start_http_server

from pml.schemas.errors import ConfigurationError

LOOPBACK = "127.0.0.1"
PORTS_TRIED = 10
# From a hit (about a millisecond) to the longest run.
SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)

RUNS = Counter("pml_runs_total", "Runs that ended", ["status"])
RUN_DURATION = Histogram("pml_run_duration_seconds", "From start to end of a run", buckets=SECONDS)
TOOL_CALLS = Counter(
    "pml_tool_calls_total",
    "Calls of MCP tools that ended",
    ["server", "tool", "status", "error_type", "speculative"],
)
TOOL_CALL_DURATION = Histogram(
    "pml_tool_call_duration_seconds", "From start to end of a call", ["server", "tool"], buckets=SECONDS
)
SPECULATIONS = Counter(
    "pml_speculations_total", "Speculations that ended", ["server", "tool", "fate", "reason"]
)
ELIGIBLE_CALLS = Counter(
    "pml_eligible_calls_total", "Calls that could run early", ["server", "tool", "speculated"]
)
SPECULATION_SAVED = Counter("pml_speculation_saved_seconds_total", "Latency that hits saved")
SPECULATION_WASTED = Counter("pml_speculation_wasted_seconds_total", "Tool time of results nobody used")
SPECULATION_THRESHOLD = Gauge(
    "pml_speculation_threshold", "Confidence that a speculation needs", ["scope", "name"]
)
MODEL_HIT_RATE = Gauge(
    "pml_model_hit_rate",
    "Share of predictions of the model looked at last whose first candidate came: live, and its interval",
    ["figure"],
)
MODEL_ROLLBACKS = Counter("pml_model_rollbacks_total", "Models that did worse live than their best baseline")
DEAD_LETTERS = Counter(
    "pml_dead_letters_total", "Records that could not be handled", ["topic", "stage", "code"]
)
CONSUMER_LAG = Gauge(
    "pml_consumer_lag_records", "Records that wait for a role", ["role", "topic", "partition"]
)
APPEND_CONFLICTS = Counter(
    "pml_append_conflicts_total", "Appends to the log that landed elsewhere or are in doubt"
)
ACCOUNT_BREACHES = Counter("pml_account_breaches_total", "Sessions whose speculation accounts do not add up")
MCP_SERVER_UP = Gauge("pml_mcp_server_up", "Whether an MCP server answers", ["server"])
BUILD_INFO = Gauge("pml_build_info", "Always 1; the label is the release", ["version"])
BUILD_INFO.labels(version("procedural-memory-layer")).set(1)


class ConsumerLag:
    """What one role lags by. A partition that it tells of no more is somebody else's: its figure goes."""

    def __init__(self, role: str) -> None:
        self._role = role
        self._told: set[tuple[str, int]] = set()

    def tell(self, records: Mapping[tuple[str, int], int]) -> None:
        """How many records wait, by topic and partition: of all that the role owns now."""
        self.keep(records)
        for (topic, partition), waiting in records.items():
            CONSUMER_LAG.labels(self._role, topic, partition).set(waiting)
        self._told = set(records)

    def keep(self, owned: Collection[tuple[str, int]]) -> None:
        """Only what is told of these stays."""
        for topic, partition in self._told.difference(owned):
            with suppress(KeyError):  # another of the same role in this process may have been quicker
                CONSUMER_LAG.remove(self._role, topic, partition)
        self._told.intersection_update(owned)


class Endpoint:
    """The `/metrics` endpoint of this process, on loopback."""

    def __init__(self, server: Any, thread: Any) -> None:
        self._server = server
        self._thread = thread

    @property
    def address(self) -> str:
        """Where Prometheus finds it."""
        return f"http://{LOOPBACK}:{self._server.server_port}/metrics"

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def serve(port: int) -> Endpoint:
    """Answer scrapes at `port` or the next free one after it (several workers share one setting); 0: any.

    Raises:
        ConfigurationError: none of them is free.
    """
    last = min(port + PORTS_TRIED, 65_536) if port else 1
    for candidate in range(port, last):
        try:
            return Endpoint(*start_http_server(candidate, addr=LOOPBACK))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    raise ConfigurationError(
        f"no port from {port} to {last - 1} is free; set metrics.port to another, or to 0"
    )

"""The configuration of a simulated installation: short times, small limits, a key for tests."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

from pml.processors.workflow import Policy
from pml.schemas.identifiers import session_key
from pml.streams.connection import partition_for
from pml.streams.settings import Settings

KEY = b"installation key for simulation!"
# A Monday in November 2026, so that traces look like traces.
BEGAN_MS = 1_795_000_000_000
NUMBERS = (0, 1)
TENANTS = ("local", "other")


@lru_cache(maxsize=1)
def settings() -> Settings:
    """Settings of every simulated process; nothing of the machine's own configuration but the defaults."""
    return Settings.load(
        data_dir=Path("/nonexistent/pml-simulation"),
        kafka={"bootstrap_servers": "simulated:9092", "session_timeout_s": 6, "heartbeat_s": 0.5},
        orchestrator={"chunk_records": 20, "write_behind_s": 0.5},
        bridge={"concurrency": 6, "session_in_flight_max": 4, "partition_in_flight_max": 8},
    )


def policy(random: Random, mode: str, deep: bool) -> Policy:
    """Limits and time-outs of the core; a whole run takes less than a minute."""
    values: dict[str, Any] = {"budget_name": random.choice(["low", "normal", "normal", "high"])}
    values["speculation_mode"] = mode if mode == "off" else random.choice(["on"] * 19 + ["shadow"])
    return Policy(
        hash_key=KEY,
        task_timeout_ms=4_000,
        queue_timeout_ms=8_000,
        run_timeout_ms=40_000,
        bridge_grace_ms=1_000,
        session_ttl_ms=random.choice([60_000, 60_000, 5_000]),
        speculation_ttl_ms=random.choice([1_500, 5_000, 300_000]),
        speculation_depth=3 if deep else random.choice([1, 1, 2, 3]),
        cache_bytes=random.choice([400, 16_777_216, 16_777_216]),
        verified_share=random.choice([0.0, 0.0, 0.3]),
        decision_timeout_ms=random.choice([2_000, 8_000]),
        approval_timeout_ms=6_000,
        on_timeout=random.choice(["abort", "continue"]),
        approve="before",
        predictions=random.choice(["on", "on", "off"]),
        **values,
    )


@lru_cache(maxsize=1)
def session_names() -> dict[int, list[tuple[str, str]]]:
    """Sessions by the partition that they live in."""
    found: dict[int, list[tuple[str, str]]] = {number: [] for number in NUMBERS}
    for index in range(400):
        for tenant in TENANTS:
            number = partition_for(session_key(tenant, f"s{index}"))
            if number in found:
                found[number].append((tenant, f"s{index}"))
    return found

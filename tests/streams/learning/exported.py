"""A file as `pml export traces` writes it, small: sessions in which each tool has one that follows it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

TOOLS = ("chart:draw", "files:read", "mail:send", "weather:fetch")


def write_export(file: Path, sessions: int = 30, runs: int = 4) -> Path:
    """Sessions of runs with one call each; the tools of a session follow each other by number."""
    first = np.random.default_rng(1).integers(0, len(TOOLS), sessions)
    tool = ((first[:, None] + np.arange(runs)) % len(TOOLS)).ravel().astype("<i4")
    count = sessions * runs
    zeros = np.zeros(count, dtype="<i4")
    np.savez_compressed(
        file,
        tenant=zeros,
        session_id=np.array([f"ses_{number // runs:03}" for number in range(count)], dtype="S7"),
        epoch=np.zeros(count, dtype="<u8"),
        log_offset=np.arange(count, dtype="<u8"),
        ended_at_us=np.arange(count, dtype="<i8"),
        group=np.arange(count, dtype="<u8"),
        success=np.ones(count, dtype="|u1"),
        exploratory=np.zeros(count, dtype="|u1"),
        capability=zeros,
        capability_words=np.array([""]),
        intent=zeros,
        intent_words=np.array([""]),
        offsets=np.arange(count + 1),
        tool=tool,
        tool_words=np.array(TOOLS),
        call_mocked=np.zeros(count, dtype="|u1"),
    )
    return file

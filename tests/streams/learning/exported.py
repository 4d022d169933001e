"""A file as `pml export traces` writes it, small: sessions in which each tool has one that follows it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

TOOLS = ("chart:draw", "files:read", "mail:send", "weather:fetch")


PATTERNS = tuple(
    f'{{"has_file_path":true,"file_extension":"{extension}","argument_count":1,"types":{{"path":"string"}}}}'
    for extension in (".csv", ".json")
)


def write_export(file: Path, sessions: int = 30, runs: int = 4, **others: np.ndarray) -> Path:
    """Sessions of runs with one call each; the tools of a session follow each other by number.

    Calls on a `.csv` fail, those on a `.json` succeed. `others` are columns instead of these.
    """
    first = np.random.default_rng(1).integers(0, len(TOOLS), sessions)
    tool = ((first[:, None] + np.arange(runs)) % len(TOOLS)).ravel().astype("<i4")
    count = sessions * runs
    zeros = np.zeros(count, dtype="<i4")
    odd = np.random.default_rng(2).integers(0, 2, count)
    columns: dict[str, np.ndarray] = {
        "tenant": zeros,
        "tenant_words": np.array(["local"]),
        "session_id": np.array([f"ses_{number // runs:03}" for number in range(count)], dtype="S7"),
        "run_id": np.array([f"run_{number:05}" for number in range(count)], dtype="S9"),
        "epoch": np.zeros(count, dtype="<u8"),
        "log_offset": np.arange(count, dtype="<u8"),
        "ended_at_us": np.arange(count, dtype="<i8") * 1_000_000,
        "group": np.arange(count, dtype="<u8"),
        "success": np.ones(count, dtype="|u1"),
        "exploratory": np.zeros(count, dtype="|u1"),
        "capability": zeros,
        "capability_words": np.array([""]),
        "intent": zeros,
        "intent_words": np.array([""]),
        "offsets": np.arange(count + 1),
        "tool": tool,
        "tool_words": np.array(TOOLS),
        "call_mocked": np.zeros(count, dtype="|u1"),
        "call_pattern": odd.astype("<i4"),
        "call_pattern_words": np.array(PATTERNS),
        "call_success": (odd == 1).astype("|u1"),
    }
    np.savez_compressed(file, allow_pickle=False, **{**columns, **others})
    return file

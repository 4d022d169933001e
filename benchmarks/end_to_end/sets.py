"""The sets that are played, several at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.end_to_end.clock import Rules
from benchmarks.end_to_end.measure import measured
from pml.streams.discovery.wordllama_embedding import WordLlamaEmbedding

# Of `WAYS`: the two that are read twice also with as much visible as in the figures that are aimed at.
SETS = (
    *("toollinkos", "bfcl_multi_turn", "bfcl_multi_turn, own turn", "nestful"),
    *("api_bank", "api_bank, all turns", "n8n"),
)
LONGEST = ("n8n", "toollinkos")
# `python -m benchmarks prediction` on two cores: what a question costs a call, rounded up. Its answer is
# there before the shortest thought is over; 20 ms are a guess on the safe side of an unloaded machine.
ASKED_S, ANSWER_S = 0.010, 0.020


def rows_of_sets(folder: Path, names: Sequence[str], seed: int, most: int) -> Iterator[dict[str, Any]]:
    """The row of each set, as they come; a process for each core measures one set after another.

    Those that take longest begin first. At most `most` sessions of each fold are played.
    """
    ordered = sorted(names, key=lambda name: name not in LONGEST)
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        for found in as_completed([pool.submit(_row, folder, name, seed, most) for name in ordered]):
            yield found.result()


def _row(folder: Path, name: str, seed: int, most: int) -> dict[str, Any]:
    rules = Rules(1.0, ASKED_S, ANSWER_S)
    return measured(folder, name, WordLlamaEmbedding(), rules, seed=seed, most=most, told=_nobody)


def _nobody(text: str) -> None:
    """Progress is told by set: several are measured at once."""

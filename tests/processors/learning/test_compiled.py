"""What is compiled anew learns the same, to the last bit, as what was compiled before and kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TRAINING = """
import numpy as np
from pml.processors.learning.attention.fitting import fit_head
from tests.processors.learning.small_traces import trace_set

draws = np.random.default_rng(1)
traces = trace_set(draws.integers(1, 30, (40, 6)).tolist())
points, texts = (draws.normal(size=(count, 32)).astype(np.float32) for count in (30, 40))
print(fit_head(traces, points, texts, 1).flat.tobytes().hex())
"""


def trained(kept: Path) -> str:
    """The parameters that a process of its own learns, with machine code kept in a folder."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(kept)}
    told = subprocess.run(
        [sys.executable, "-c", TRAINING], env=environment, capture_output=True, text=True, check=True
    )
    return told.stdout


def test_a_process_that_compiles_learns_what_one_learns_that_finds_it_compiled(tmp_path: Path) -> None:
    anew = trained(tmp_path)
    assert len(anew) > 1000
    assert len(list(tmp_path.rglob("*.nbc"))) > 5
    assert trained(tmp_path) == anew

"""`pml`: the command line. Each noun has a module; what is heavy is imported inside the commands."""

from __future__ import annotations

import gc
import os

# Imports make objects that stay: to look for garbage among each 700 of them takes a tenth of a command.
COLLECTED_AFTER = 10_000


def main() -> None:
    """The console script."""
    # NumPy's products here are small: threads that wait for each other take a third more processor time and
    # save none. NumPy reads this when it is imported; who sets it otherwise decides.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(COLLECTED_AFTER)
    from pml.streams.cli.app import app

    app(prog_name="pml")

"""`pml`: the command line. Each noun has a module; what is heavy is imported inside the commands."""

from __future__ import annotations

import os


def main() -> None:
    """The console script."""
    # NumPy's products here are small: threads that wait for each other take a third more processor time and
    # save none. NumPy reads this when it is imported; who sets it otherwise decides.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from pml.streams.cli.app import app

    app(prog_name="pml")

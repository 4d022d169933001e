"""The command: `python -m tests.chaos --minutes 10 --seed 1 [--seconds S] [--folder PATH] [--json]`."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.play import play
from tests.chaos.report import as_dict, lines


def main(words: Sequence[str]) -> int:
    """Play one seed. 0: every check held; 1: one did not, and the data folder stays."""
    wanted = arguments(words)
    folder = Path(wanted.folder or tempfile.mkdtemp(prefix=f"pml-chaos-{wanted.seed}-")).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    # A broker that is away is what is wanted here; the client need not say so each time.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    outcome = asyncio.run(play(wanted.seed, wanted.seconds or wanted.minutes * 60, folder))
    if wanted.json:
        sys.stdout.write(json.dumps(as_dict(outcome, folder), indent=2) + "\n")
    else:
        sys.stdout.write("\n".join(lines(outcome, folder)) + "\n")
    if not outcome.violations and not wanted.folder:
        shutil.rmtree(folder)
    return 1 if outcome.violations else 0


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long faults happen")
    parser.add_argument("--seconds", type=float, help="the same in seconds")
    parser.add_argument("--seed", type=int, default=1, help="what is played and what goes wrong when")
    parser.add_argument("--folder", type=Path, help="keep all data here (default: a temporary folder)")
    parser.add_argument("--json", action="store_true", help="for programs")
    return parser.parse_args(words)

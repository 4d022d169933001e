"""Where the recorded workflows and tools are, which nobody here wrote."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "PML_DATASETS"
DEFAULT = Path(__file__).resolve().parents[2] / "shared" / "datasets"


def datasets_place() -> Path | None:
    """The folder that `PML_DATASETS` names, else the one beside the checkout; None where there is none."""
    found = Path(os.environ.get(VARIABLE) or DEFAULT)
    return found if found.is_dir() else None

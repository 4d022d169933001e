"""Thresholds as a picture: one panel a context or predictor, the threshold and the success rate beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from pml.processors.speculation.adaptation import (
    HIGHEST,
    LOWEST,
    TARGET,
    WANTED_FROM,
    WANTED_TO,
)
from pml.processors.speculation.calibration import Simulated
from pml.processors.speculation.thresholds import INITIAL
from pml.schemas.errors import ConfigurationError

COLUMNS = 2
PANEL_INCHES = (6.0, 2.6)
# More panels are no picture any more.
PANELS_MAX = 8
THRESHOLD_COLOUR, RATE_COLOUR, WANTED_COLOUR = "#1f5fa8", "#b4460f", "#b4460f"


@dataclass(frozen=True, slots=True)
class Panel:
    """One context or predictor: after so many outcomes, the threshold and the average of the success rate."""

    title: str
    note: str
    outcomes: Sequence[int]
    thresholds: Sequence[float]
    rates: Sequence[float]


def simulated_panels(found: Sequence[Simulated]) -> list[Panel]:
    """A panel for each predictor."""
    return [
        Panel(
            item.predictor.name.replace("_", " "),
            item.verdict,
            [window.outcomes for window in item.windows],
            [window.threshold for window in item.windows],
            [window.ema for window in item.windows],
        )
        for item in found
    ]


def draw(panels: Sequence[Panel], path: Path, title: str) -> None:
    """Write the picture as PNG.

    Raises:
        ConfigurationError: the file cannot be written.
    """
    from matplotlib.figure import Figure

    shown = panels[:PANELS_MAX]
    rows = ceil(len(shown) / COLUMNS)
    width, height = PANEL_INCHES
    figure = Figure(figsize=(COLUMNS * width, rows * height + 0.8), layout="constrained")
    grid = figure.subplots(rows, COLUMNS, sharey=True, squeeze=False)
    for place, panel in zip(grid.flat, shown, strict=False):
        _draw_panel(place, panel)
    for place in grid.flat[len(shown) :]:
        place.set_axis_off()
    figure.suptitle(title)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    try:
        figure.savefig(path, format="png", dpi=90, metadata={"Software": None})
    except OSError as error:
        raise ConfigurationError(f"the picture cannot be written to {path}: {error.strerror}") from None


def _draw_panel(place: Any, panel: Panel) -> None:
    place.axhspan(WANTED_FROM, WANTED_TO, color=WANTED_COLOUR, alpha=0.10, label="range wanted")
    for bound in (LOWEST, HIGHEST):
        place.axhline(bound, color=THRESHOLD_COLOUR, linewidth=0.6, linestyle=":")
    # Where every context begins.
    outcomes = [0, *panel.outcomes]
    place.step(
        outcomes,
        [INITIAL, *panel.thresholds],
        where="post",
        color=THRESHOLD_COLOUR,
        linewidth=1.6,
        label="threshold",
    )
    place.plot(
        outcomes, [TARGET, *panel.rates], color=RATE_COLOUR, linewidth=1.0, label="success rate (average)"
    )
    place.set_ylim(0.4, 1.0)
    place.set_xlim(0, outcomes[-1] or 1)
    if not panel.outcomes:
        place.set_xticks([])
    place.set_title(f"{panel.title}\n{panel.note}", fontsize=9, loc="left")
    place.set_xlabel("outcomes", fontsize=8)
    place.tick_params(labelsize=8)
    place.spines[["top", "right"]].set_visible(False)

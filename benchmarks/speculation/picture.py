"""The picture: how many times as fast each data set is in each regime, beside the bound."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.speculation.findings import ALL
from benchmarks.speculation.regimes import BY_LAYER, LOOP, WITHOUT

PANELS = (("tools only", BY_LAYER), ("decisions", WITHOUT), ("agent loop", LOOP))
COLOURS = {"PML, depth 1": "#3b6ea5", "PML, depth 3": "#8fb6dc"}
BAR = 0.36
Row = Mapping[str, Any]


def draw_picture(rows: Sequence[Row]) -> bytes:
    """An SVG, the same for the same rows."""
    figure = Figure(figsize=(11, 3.8), layout="constrained")
    for axes, (regime, baseline) in zip(figure.subplots(1, len(PANELS)), PANELS, strict=True):
        chosen = [row for row in rows if (row["regime"], row["baseline"]) == (regime, baseline)]
        _panel(axes, chosen, f"{regime}\n÷ {baseline}")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    written = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "pml", "svg.fonttype": "none"}):
        figure.savefig(written, format="svg", metadata={"Date": None})
    return written.getvalue()


def _panel(axes: Axes, rows: Sequence[Row], title: str) -> None:
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    for number, (side, colour) in enumerate(COLOURS.items()):
        found = [row for row in rows if row["side"] == side]
        at = [names.index(row["dataset"]) + (number - 0.5) * BAR for row in found]
        times = [row["times"] for row in found]
        spread = [
            [row["times"] - row["times_min"] for row in found],
            [row["times_max"] - row["times"] for row in found],
        ]
        axes.barh(at, times, BAR, color=colour, label=side, xerr=spread, ecolor="#555555", capsize=2)
        bound = [row["bound"] for row in found]
        label = "no overhead at all" if number else None
        axes.plot(bound, at, "|", color="#c0392b", markersize=11, markeredgewidth=2, label=label)
    axes.axvline(1.0, color="#999999", linewidth=0.8)
    axes.set_yticks(range(len(names)), [f"{name} of them" if name == ALL else name for name in names])
    axes.invert_yaxis()
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("times as fast")
    axes.set_xlim(left=0)

"""The learning curve as a picture: hit@1 of what serves and what might, after more and more sessions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pml.schemas.errors import ConfigurationError

INCHES = (7.0, 4.2)


def check_writable(path: Path) -> None:
    """Find out whether a picture could be written there; what is there stays as it is.

    Raises:
        ConfigurationError: it could not.
    """
    try:
        place = path.resolve()  # a link stays, whether there is something behind it or not yet
        was_there = place.exists()
        with place.open("ab"):
            pass
        if not was_there:
            place.unlink()
    except OSError as error:
        raise _unwritable(path, error) from None


def draw_curve(manifest: Mapping[str, Any], path: Path) -> None:
    """Write the picture of a manifest that has a curve as PNG.

    Raises:
        ConfigurationError: the file cannot be written.
    """
    from matplotlib.figure import Figure

    curve = manifest["learning_curve"]
    figure = Figure(figsize=INCHES, layout="constrained")
    place: Any = figure.subplots()
    for name, hits in curve["hits"].items():
        marked = name == manifest["serves"]
        place.plot(
            curve["sessions"],
            hits,
            marker="o",
            markersize=3,
            linewidth=2.0 if marked else 1.0,
            label=f"{name} (serves)" if marked else name,
        )
    place.set_ylim(0.0, 1.0)
    place.set_xlim(0, curve["sessions"][-1])
    place.set_xlabel("sessions that it was fitted on")
    place.set_ylabel(f"hit@1 on {curve['questions']} questions")
    place.set_title(f"{manifest['model_id']}, seed {manifest['seed']}", fontsize=10, loc="left")
    place.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    try:
        figure.savefig(path, format="png", dpi=90, metadata={"Software": None})
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(f"the picture cannot be written to {path}: {error.strerror or error}")

"""`pml thresholds list|branches|set|unset|plot`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pml.streams.cli.exits import FAILED
from pml.streams.cli.output import Json, note, print_json, print_table
from pml.streams.cli.session import load_settings, open_store, person, run_async

if TYPE_CHECKING:
    from pml.streams.projections.thresholds.reader import BranchOutcome
    from pml.streams.threshold_plot import Panel

app = typer.Typer(no_args_is_help=True, help="Show and set how confident a speculation must be.")
Tenant = Annotated[str, typer.Option("--tenant", help="Whose contexts.")]
User = Annotated[str | None, typer.Option("--user", help="Only runs of this principal; with --type.")]
Domain = Annotated[str | None, typer.Option("--domain", help="Only runs of this domain; with --type.")]
Type = Annotated[str | None, typer.Option("--type", help="Only runs of this workflow type.")]
Principal = Annotated[
    str | None, typer.Option("--as", help="Who says so, written into the record; else whoever is logged in.")
]
COLUMNS = ("context", "value", "state", "success rate", "outcomes", "window", "learned", "set by")

BRANCH_COLUMNS = ("tenant", "workflow type", "decision", "outcome", "runs", "probability")
NOTHING_COUNTED = (
    "no outcome has been counted: only what runs early without being certain counts, which is what stands "
    "behind an undecided branch. See `pml thresholds branches`."
)

# The newest of all learned contexts, those with most outcomes first; each is one panel of the picture.
HISTORY = """
SELECT tenant, context_key, groupArray(outcomes) AS outcomes, groupArray(value) AS thresholds,
    groupArray(ema) AS rates, argMax(state, log_offset) AS state
FROM (SELECT * FROM thresholds WHERE source = 'learned' ORDER BY outcomes)
GROUP BY tenant, context_key
ORDER BY length(outcomes) DESC, context_key
LIMIT {panels:UInt8}
"""


@app.command("list")
def list_(json: Json = False) -> None:
    """Show every context: its threshold, how often speculation was right there, whether it has converged.

    A context is cold before its first full window; then a more general one holds.

    Examples: pml thresholds list · pml thresholds list --json
    """
    from pml.streams.projections.thresholds.reader import read_thresholds

    found = run_async(read_thresholds(load_settings()))
    if json:
        print_json({"items": [item.as_dict() for item in found], "next_cursor": None})
        return
    print_table(COLUMNS, [_row(item.as_dict()) for item in found])
    if not found:
        note(NOTHING_COUNTED)


@app.command()
def branches(json: Json = False) -> None:
    """Show how often each decision came to each outcome, and how likely that makes it.

    What is behind an open decision runs early where its branch is at least as likely as the threshold.

    Examples: pml thresholds branches · pml thresholds branches --json
    """
    from pml.streams.projections.thresholds.reader import read_branches

    found = run_async(read_branches(load_settings()))
    if json:
        print_json({"items": [item.as_dict() for item in found], "next_cursor": None})
        return
    print_table(BRANCH_COLUMNS, [(*_named(item), f"{item.probability:.4f}") for item in found])


@app.command("set")
def set_(
    value: Annotated[float, typer.Argument(min=0.0, max=1.0, help="0 to 1; 1: only what is certain.")],
    *,
    tenant: Tenant = "local",
    user: User = None,
    domain: Domain = None,
    workflow_type: Type = None,
    principal: Principal = None,
    json: Json = False,
) -> None:
    """Set the threshold of a context by hand: it holds before anything learned, within a second.

    Examples: pml thresholds set 0.9 · pml thresholds set 0.75 --type release_notes --as ann
    """
    _override(value, (tenant, user, domain, workflow_type), principal, as_json=json)


@app.command()
def unset(
    *,
    tenant: Tenant = "local",
    user: User = None,
    domain: Domain = None,
    workflow_type: Type = None,
    principal: Principal = None,
    json: Json = False,
) -> None:
    """Take back what was set for a context: what it has learned holds again.

    Example: pml thresholds unset --type release_notes
    """
    _override(None, (tenant, user, domain, workflow_type), principal, as_json=json)


@app.command()
def plot(
    seed: Annotated[
        int | None, typer.Option("--simulate", min=0, help="Simulate predictors instead.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="The PNG to write.")] = Path("thresholds.png"),
    json: Json = False,
) -> None:
    """Draw how thresholds moved; or, with a seed, how they would for predictors of different calibration.

    Exit 1 where a predictor that can settle did not.

    Examples: pml thresholds plot · pml thresholds plot --simulate 1 --out simulated.png
    """
    if seed is None:
        _plot_history(out, as_json=json)
    else:
        _plot_simulation(seed, out, as_json=json)


def _named(item: BranchOutcome) -> tuple[str, ...]:
    names = (item.tenant, item.workflow_type or "(none)", item.decision_id, item.outcome)
    return (*names, f"{item.runs} of {item.of}")


def _row(row: dict[str, Any]) -> tuple[Any, ...]:
    rate = None if row["ema"] is None else f"{row['ema']:.3f}"
    window = f"{row['window']}/{row['window_size']}"
    return (
        *(row["key"], _share(row["value"]), row["state"], rate, row["outcomes"], window),
        *(_share(row["learned"]), row["set_by"]),
    )


def _share(value: float | None) -> str | None:
    return None if value is None else f"{value:.4f}"


def _override(
    value: float | None,
    context: tuple[str, str | None, str | None, str | None],
    principal: str | None,
    *,
    as_json: bool,
) -> None:
    from pml.streams.threshold_overrides import chosen_context, publish_override

    key, principal = chosen_context(*context), principal or person()
    run_async(publish_override(load_settings(), key, value, principal))
    note(f"{key} is left to learning" if value is None else f"{key} is {value:g}")
    if as_json:
        print_json({"context": key, "value": value, "principal": principal})


def _plot_simulation(seed: int, out: Path, *, as_json: bool) -> None:
    from pml.processors.speculation.calibration import simulate
    from pml.streams.threshold_plot import draw, simulated_panels

    found = simulate(seed)
    draw(simulated_panels(found), out, f"Thresholds for predictors of different calibration, seed {seed}")
    rows = [item.as_dict() for item in found]
    if as_json:
        print_json({"seed": seed, "file": str(out), "predictors": rows})
    else:
        names = ("predictor", "calibration", "threshold", "success rate", "what became of it")
        print_table(names, [_told(row) for row in rows])
        note(f"written to {out}")
    if not all(item.as_expected for item in found):
        raise typer.Exit(FAILED)


def _told(row: dict[str, Any]) -> tuple[Any, ...]:
    threshold, rate = _share(row["threshold"]), _share(row["success_rate"])
    return row["predictor"], row["calibration"], threshold, rate, row["verdict"]


def _plot_history(out: Path, *, as_json: bool) -> None:
    from pml.streams.threshold_plot import draw

    panels = _history()
    if panels:
        draw(panels, out, "Thresholds as they were learned")
        note(f"written to {out}")
    else:
        note("no context has had a full window of 50 outcomes yet: nothing to draw")
    if as_json:
        print_json({"file": str(out) if panels else None, "contexts": [panel.title for panel in panels]})


def _history() -> list[Panel]:
    from pml.streams.threshold_plot import PANELS_MAX, Panel

    with open_store(load_settings()) as store:
        rows = store.query(HISTORY, {"panels": PANELS_MAX}).as_dicts()
    return [
        Panel(row["context_key"], row["state"], row["outcomes"], row["thresholds"], row["rates"])
        for row in rows
    ]

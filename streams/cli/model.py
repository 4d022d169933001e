"""`pml model list|show|promote|rollback|prune`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pml.schemas.identifiers import DEFAULT_TENANT
from pml.streams.cli.output import Json, note, print_json, print_table, say
from pml.streams.cli.session import load_settings, person, run_async
from pml.streams.cli.train_report import print_manifest

if TYPE_CHECKING:
    from pml.schemas.catalog import ModelRecord
    from pml.schemas.errors import PMLError

app = typer.Typer(no_args_is_help=True, help="Models of what comes next: which there are, and which serves.")
ModelId = Annotated[str, typer.Argument(metavar="MODEL", help="Its id, mdl_…")]
Principal = Annotated[
    str | None, typer.Option("--as", help="Who says so, written into the record; else whoever is logged in.")
]
Tenant = Annotated[str, typer.Option(help="Whose models.")]
COLUMNS = (
    "model",
    "trained",
    "learner",
    "hit@1",
    "best baseline",
    "its hit@1",
    "questions",
    "live hit@1",
    "serves",
)


@app.callback()
def _group() -> None:
    """Models of what comes next: which there are, and which serves."""


@app.command("list")
def list_(*, tenant: Tenant = DEFAULT_TENANT, json: Json = False) -> None:
    """Show every model of the folder, the newest first, and which one serves.

    Examples: pml model list · pml model list --json
    """
    from pml.streams.learning.listing import model_rows

    rows = run_async(model_rows(load_settings(), tenant, _tell_passed_over))
    if json:
        print_json({"items": rows, "next_cursor": None})
        return
    print_table(COLUMNS, map(_row, rows))
    _tell_fallen(rows)


@app.command()
def show(model_id: ModelId, json: Json = False) -> None:
    """Show a model's manifest: what it was trained on, what every learner reached, and which one serves.

    Examples: pml model show mdl_0123456789ab · pml model show mdl_0123456789ab --json
    """
    from pml.streams.learning.kept_backtests import latest_backtest
    from pml.streams.learning.listing import lived
    from pml.streams.learning.manifests import read_manifest, tenant_of
    from pml.streams.learning.shown_manifest import read_shown

    settings = load_settings()
    # As JSON it is told as it is; the table needs more of it than lists and promotions do.
    manifest = (read_manifest if json else read_shown)(settings.models_folder, model_id)
    found = run_async(lived(settings, tenant_of(manifest), model_id))
    tested = latest_backtest(settings.models_folder, model_id)
    if json:
        told = None if tested is None else tested.model_dump(mode="json")
        print_json({**manifest, **found, "backtest": told})
        return
    print_manifest(manifest)
    if tested is not None:
        say(
            f"backtest since {tested.since}, threshold {tested.threshold:.2f}: {tested.begun} calls begun "
            f"early, {tested.hits} of use; {tested.saved_ms / 1_000:.1f} s saved, "
            f"{tested.wasted_ms / 1_000:.1f} s wasted"
        )
    if found["live"] is not None:
        typer.echo(f"live: hit@1 {_live(found['live'])} of {found['live']['outcomes']} predictions")
    _tell_fallen([{**manifest, **found}])


@app.command()
def promote(model_id: ModelId, *, principal: Principal = None, json: Json = False) -> None:
    """Let a model serve its tenant, everywhere and at once.

    Example: pml model promote mdl_0123456789ab
    """
    from pml.streams.learning.promotion import promote as published

    _tell(run_async(published(load_settings(), model_id, principal or person())), as_json=json)


@app.command()
def rollback(*, tenant: Tenant = DEFAULT_TENANT, principal: Principal = None, json: Json = False) -> None:
    """Let the model serve that did before.

    Example: pml model rollback
    """
    from pml.streams.learning.promotion import roll_back

    _tell(run_async(roll_back(load_settings(), principal or person(), tenant)), as_json=json)


@app.command()
def prune(
    *,
    keep: Annotated[int, typer.Option(min=1, help="How many of the newest stay.")],
    tenant: Tenant = DEFAULT_TENANT,
    json: Json = False,
) -> None:
    """Remove old models; the one that serves, and those it can be gone back to, always stay.

    Example: pml model prune --keep 10
    """
    from pml.streams.learning.pruning import prune as pruned

    removed = run_async(pruned(load_settings(), tenant, keep))
    note(f"removed {len(removed)} of them" + (f": {', '.join(removed)}" if removed else ""))
    if json:
        print_json({"removed": removed})


def _tell(record: ModelRecord, *, as_json: bool) -> None:
    note(f"{record.model_id} ({record.learner}) serves from now on")
    tested = record.backtest
    if tested is None:
        note(f"no backtest goes with it: pml backtest --model {record.model_id}")
    else:
        note(f"its backtest, {tested.runs} runs: {tested.hits} of {tested.begun} calls begun early of use")
    if as_json:
        print_json(record.model_dump(mode="json"))


def _tell_passed_over(error: PMLError) -> None:
    note(f"a model is passed over: {error.message}")


def _tell_fallen(rows: Iterable[Mapping[str, Any]]) -> None:
    for row in rows:
        if row["fell"] is not None:
            note(f"{row['model_id']} was rolled back: {row['fell']}")


def _live(found: Mapping[str, Any] | None) -> str | None:
    if found is None:
        return None
    return f"{found['hit_1']:.3f} [{found['low']:.3f}, {found['high']:.3f}]"


def _row(row: dict[str, Any]) -> tuple[Any, ...]:
    hits = (f"{row['hit_1']:.3f}", row["baseline"], f"{row['baseline_hit_1']:.3f}")
    head = row["model_id"], row["created_at"], row["learner"]
    return (*head, *hits, row["questions"], _live(row["live"]), row["serves"])

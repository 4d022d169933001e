"""`pml capability list|show|runs|rename`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pml.streams.cli.output import Json, note, print_json, print_table, say_source, shortened
from pml.streams.cli.session import load_settings, open_store, person, run_async

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pml.processors.capabilities.neighbours import Neighbour
    from pml.streams.capability_listing import ListedCapability, Surrounded
    from pml.streams.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Learned capabilities: what they do, how their runs went.")
Name = Annotated[str, typer.Argument(metavar="NAME", help="Its name or its id (cap_…).")]
Tenant = Annotated[str, typer.Option("--tenant", help="Whose.")]
COLUMNS = ("name", "id", "status", "runs", "success", "approval", "runs early", "tools")
NEIGHBOURS_SHOWN = 20
NOTHING = (
    "nothing was analysed yet: run a program or a workflow, e.g. `pml submit job.py --intent '…' --wait`"
)


@app.command("list")
def list_(tenant: Tenant = "local", json: Json = False) -> None:
    """Show every capability, drafts too: learned is what has succeeded once; only that answers an intent.

    Examples: pml capability list · pml capability list --json
    """
    from pml.streams.capability_listing import read_capabilities

    found = run_async(read_capabilities(load_settings(), tenant))
    if json:
        print_json({"items": [item.as_dict() for item in found], "next_cursor": None})
        return
    print_table(COLUMNS, [_row(item) for item in found])
    if not found:
        note(NOTHING)


@app.command()
def show(
    name: Name,
    *,
    tenant: Tenant = "local",
    code: Annotated[bool, typer.Option("--code", help="Print the program that it is from.")] = False,
    json: Json = False,
) -> None:
    """Show one: its parameters, calls, neighbours, and from ClickHouse the paths and decisions of its runs.

    Neighbours are the edges of the tool graph at it and at its tools, the strongest 20; --json has 100.

    Examples: pml capability show release-notes · pml capability show release-notes --code
    """
    from pml.streams.capability_listing import read_capability

    settings = load_settings()
    shown = run_async(read_capability(settings, tenant, name))
    item = shown.item
    if code:
        say_source(item.record.code or "")
        return
    statistics = _statistics(settings, item)
    if json:
        told = {**item.as_dict(), "edges": shown.edges()}
        print_json({**told, "paths": None, "decisions": None, **(statistics or {})})
        return
    _print(item)
    _print_neighbours(shown)
    if statistics is not None:
        _print_statistics(statistics)


@app.command()
def runs(
    name: Name,
    *,
    tenant: Tenant = "local",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="The newest so many.")] = 50,
    json: Json = False,
) -> None:
    """Show the runs of one, the newest first.

    Examples: pml capability runs release-notes · pml capability runs cap_0123456789ab --json
    """
    from pml.streams.capability_listing import runs_of

    settings = load_settings()
    item = _chosen(settings, tenant, name)
    with open_store(settings) as store:
        rows = runs_of(store, tenant, item.record.capability_id, limit)
    if json:
        print_json({"items": rows, "next_cursor": None})
        return
    columns = ("run_id", "status", "started_at", "duration_ms", "executed_path", "hits", "saved_ms")
    print_table(
        [column.replace("_", " ") for column in columns],
        [[" ".join(row[c]) if c == "executed_path" else row[c] for c in columns] for row in rows],
    )


@app.command()
def rename(
    name: Name,
    new_name: Annotated[str, typer.Argument(metavar="NEW_NAME", help="a-z, 0-9 and -; nobody else's.")],
    *,
    tenant: Tenant = "local",
    principal: Annotated[
        str | None, typer.Option("--as", help="Who says so; else whoever is logged in.")
    ] = None,
    json: Json = False,
) -> None:
    """Give a capability another name; its id stays.

    Examples: pml capability rename what-changed-since-the-last-tag release-notes
    """
    from pml.streams.capability_listing import rename as publish_name

    work = publish_name(load_settings(), tenant, name, new_name, principal or person())
    capability_id = run_async(work)
    if json:
        print_json({"capability_id": capability_id, "name": new_name})
    else:
        note(f"{capability_id} is called {new_name}")


def _chosen(settings: Settings, tenant: str, name: str) -> ListedCapability:
    from pml.streams.capability_listing import chosen, read_capabilities

    return chosen(run_async(read_capabilities(settings, tenant)), name)


def _statistics(settings: Settings, item: ListedCapability) -> dict[str, list[dict[str, Any]]] | None:
    """None where no ClickHouse answers: the record is in Kafka and can be shown without."""
    from pml.schemas.errors import StoreUnavailable
    from pml.streams.capability_listing import statistics_of

    try:
        with open_store(settings) as store:
            return statistics_of(store, item.record.tenant, item.record.capability_id)
    except StoreUnavailable as error:
        note(f"without the statistics of its runs: {error.message}")
        return None


def _row(item: ListedCapability) -> tuple[Any, ...]:
    record = item.record
    status = f"{record.status} (never: {record.not_learned})" if record.not_learned else record.status
    return (
        *(item.name, record.capability_id, status, record.runs, _success(item), item.approval),
        *(item.speculable, shortened(" ".join(record.tools), 60)),
    )


def _success(item: ListedCapability) -> str | None:
    return f"{item.record.successes / item.record.runs:.0%}" if item.record.runs else None


def _print(item: ListedCapability) -> None:
    record = item.record
    early = "yes" if item.speculable else f"no: {item.why}"
    facts = {
        "id": record.capability_id,
        "status": record.status,
        "never learned": record.not_learned,
        "intent": record.intent,
        "from": record.source if record.language is None else f"{record.source} ({record.language})",
        "is the tool": record.tool_id,
        "runs": f"{record.runs}, {record.successes} of them well; last {record.used_at}",
        "approval": item.approval,
        "effect": item.effect,
        "runs early": early,
        "runs in the sandbox": "; ".join(record.reasons) if record.mode == "sandbox" else None,
    }
    print_table((item.name, ""), [(key, value) for key, value in facts.items() if value is not None])
    typer.echo()
    print_table(
        ("parameter", "required", "default"),
        [
            (each.name, each.required, None if each.required else _text(each.default))
            for each in record.parameters
        ],
    )
    typer.echo()
    if not record.tasks:
        print_table(("may call",), [(name,) for name in (*record.tools, *record.capabilities)])
        return
    print_table(("call", "tool", "after", "if"), [_call(task) for task in record.tasks])


def _print_neighbours(shown: Surrounded) -> None:
    rows = [_neighbour(each, shown.names) for each in shown.neighbours[:NEIGHBOURS_SHOWN]]
    if rows:
        typer.echo()
        print_table(("neighbours", "from", "to", "weight", "runs", "coverage", "fields"), rows)


def _neighbour(edge: Neighbour, names: Mapping[str, str]) -> tuple[Any, ...]:
    fields = ", ".join(f"{given or 'all'} → {taken}" for given, taken in edge.fields)
    return (
        edge.type.replace("_", "-"),
        names.get(edge.source, edge.source),
        names.get(edge.target, edge.target),
        edge.weight,
        edge.runs or None,
        edge.coverage,
        shortened(fields, 60) if fields else None,
    )


def _call(task: Any) -> tuple[Any, ...]:
    conditions = " and ".join(f"{item.node} = {item.outcome}" for item in task.condition)
    return task.id, task.tool or task.capability, " ".join(task.depends_on), conditions


def _print_statistics(statistics: dict[str, list[dict[str, Any]]]) -> None:
    typer.echo()
    print_table(
        ("path", "runs", "success rate", "median ms"),
        [
            (" ".join(row["path"]), row["runs"], row["success_rate"], row["median_ms"])
            for row in statistics["paths"]
        ],
    )
    if statistics["decisions"]:
        typer.echo()
        rows = [(row["decision"], row["outcome"], row["runs"]) for row in statistics["decisions"]]
        print_table(("decision", "outcome", "runs"), rows)


def _text(value: Any) -> str:
    import orjson

    return shortened(orjson.dumps(value).decode(), 60)

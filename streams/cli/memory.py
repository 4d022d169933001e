"""`pml memory query`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pml.streams.cli.output import Json, print_json, print_table, shortened
from pml.streams.cli.session import load_settings, open_store

if TYPE_CHECKING:
    from pml.schemas.memory import RecallAnswer, Recalled, RecallRequest

app = typer.Typer(no_args_is_help=True, help="Episodic memory: what happened before in a context like this.")
COLUMNS = ("when", "what", "tool", "success", "confidence", "keys", "similarity", "run", "told")


@app.callback()
def _group() -> None:
    """Episodic memory: what happened before in a context like this."""


@app.command()
def query(
    *,
    kind: Annotated[str, typer.Option("--type", help="The workflow type.")] = "",
    domain: Annotated[str, typer.Option(help="The domain, as a run's context names it.")] = "",
    complexity: Annotated[str, typer.Option(help="The complexity, as a run's context names it.")] = "",
    context: Annotated[str, typer.Option(metavar="JSON", help="A run's initial context, an object.")] = "{}",
    mode: Annotated[str, typer.Option(help="exact (keys), fuzzy (similar contexts) or hybrid.")] = "hybrid",
    k: Annotated[int, typer.Option("-k", min=1, max=1_000, help="How many.")] = 5,
    tenant: Annotated[str, typer.Option()] = "local",
    json: Json = False,
) -> None:
    """Find episodes of past runs: speculations with what came of them, tasks, decisions.

    A key that is not given is `default`, which is also the key of a run that names none.

    Examples: pml memory query · pml memory query --type release_notes --mode exact ·
    pml memory query --context '{"repo": "."}' --mode fuzzy -k 10 --json
    """
    request = _request({"domain": domain, "complexity": complexity}, kind, context, mode, k)
    answer = _answer(tenant, request)
    if json:
        print_json(answer.model_dump(mode="json")["episodes"])
    else:
        print_table(COLUMNS, map(_row, answer.episodes))


def _request(keys: dict[str, str], kind: str, context: str, mode: str, k: int) -> RecallRequest:
    """
    Raises:
        typer.BadParameter: the context is no JSON object, or there is no such mode.
    """
    import orjson
    from pydantic import ValidationError

    from pml.schemas.codec import explain
    from pml.schemas.memory import RecallRequest

    try:
        values = orjson.loads(context)
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"--context is no JSON: {error}") from None
    if not isinstance(values, dict):
        raise typer.BadParameter("--context must be a JSON object")
    values |= {name: value for name, value in keys.items() if value}
    try:
        return RecallRequest.model_validate({"workflow_type": kind, "context": values, "mode": mode, "k": k})
    except ValidationError as error:
        raise typer.BadParameter(explain(error)) from None


def _answer(tenant: str, request: RecallRequest) -> RecallAnswer:
    """Asked once: comparing with every context is sooner done than building an index of them."""
    from pml.clickhouse.episodes import EpisodeReader
    from pml.processors.memory.embedding import HashedNgrams
    from pml.processors.memory.index import ExactIndex
    from pml.processors.memory.memory import Memory

    settings = load_settings()
    memory = Memory(HashedNgrams(), settings.memory.episodes_max, ExactIndex)
    with open_store(settings) as store:
        memory.add(EpisodeReader(store, tenant, settings.memory.episodes_max).read())
    return memory.recall(request)


def _row(found: Recalled) -> tuple[Any, ...]:
    episode = found.episode
    confidence = None if episode.confidence is None else f"{episode.confidence:.2f}"
    similarity = None if found.similarity is None else f"{found.similarity:.2f}"
    what = episode.event_type + (f" {episode.task_id}" if episode.task_id else "")
    return (
        episode.timestamp[:19].replace("T", " "),
        what,
        episode.tool_id,
        "unknown" if episode.success is None else episode.success,
        confidence,
        found.keys,
        similarity,
        episode.workflow_id,
        shortened(_told(episode.data), 60),
    )


def _told(data: dict[str, Any]) -> str:
    """What an episode says in words: a decision, why a prediction came out so, an error, or the result."""
    if "decision" in data:
        return f"{data['decision']['action']} {data['decision']['reasoning']}"
    if "prediction" in data:
        return str(data["prediction"]["reasoning"])
    result = data.get("result", {})
    return str(result.get("error") or result.get("output") or "")

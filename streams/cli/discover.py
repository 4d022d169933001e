"""`pml discover`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pml.streams.cli.output import Json, note, print_json, print_table, shortened
from pml.streams.cli.session import load_settings, run_async

if TYPE_CHECKING:
    from pml.schemas.discovery import DiscoverAnswer, Discovered, DiscoverRequest
    from pml.streams.settings import Settings

COLUMNS = ("score", "type", "id", "name", "takes", "asks a person", "what it is")
TAKES_CHARACTERS, TOLD_CHARACTERS = 40, 80


def discover(
    intent: Annotated[str, typer.Argument(metavar="INTENT", help="What is to be done, in words.")],
    *,
    kind: Annotated[
        Literal["tool", "capability"] | None, typer.Option("--type", help="Only one kind of thing.")
    ] = None,
    min_score: Annotated[float, typer.Option(min=0.0, max=1.0, help="From this score upwards.")] = 0.0,
    limit: Annotated[int, typer.Option(min=1, max=50, help="How many.")] = 10,
    offset: Annotated[int, typer.Option(min=0, help="Those behind the first so many.")] = 0,
    tenant: Annotated[str, typer.Option("--tenant", help="Whose capabilities.")] = "local",
    json: Json = False,
) -> None:
    """Find the tools and learned capabilities that fit an intent, the best first.

    Tools are those of servers that the bridge lists now; what cannot be called is not found.

    Examples: pml discover 'read a file' · pml discover 'write release notes' --type capability --json
    """
    from pydantic import ValidationError

    from pml.schemas.codec import explain
    from pml.schemas.discovery import DiscoverRequest

    asked = {
        "intent": intent,
        "filter": {"type": kind, "min_score": min_score},
        "limit": limit,
        "offset": offset,
    }
    try:
        request = DiscoverRequest.model_validate(asked)
    except ValidationError as error:
        raise typer.BadParameter(explain(error), param_hint="INTENT") from None
    answer = run_async(_found(load_settings(), tenant, request))
    if json:
        print_json(answer.model_dump(mode="json", exclude={"items": {"__all__": {"shortened"}}}))
        return
    print_table(COLUMNS, (_row(item) for item in answer.items))
    _tell(answer)


async def _found(settings: Settings, tenant: str, request: DiscoverRequest) -> DiscoverAnswer:
    from pml.streams.discovery.finder import Finder

    async with Finder(settings) as finder:
        return await finder.discover(tenant, request)


def _row(item: Discovered) -> tuple[Any, ...]:
    taken = ", ".join(item.takes)
    return (
        *(f"{item.score:.2f}", item.type, item.id, item.name),
        *(shortened(taken, TAKES_CHARACTERS), item.needs_approval),
        shortened(item.description, TOLD_CHARACTERS),
    )


def _tell(answer: DiscoverAnswer) -> None:
    if answer.next_offset is not None:
        note(f"{answer.total} in all; more with --offset {answer.next_offset}")
    if not answer.complete:
        note("the catalog was not read to its end in time; what is newest may be missing")

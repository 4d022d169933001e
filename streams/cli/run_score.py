"""`pml run score`: how good a run was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pml.streams.cli.output import Json, print_json, say
from pml.streams.cli.run_decisions import ANSWER_S, RunId, Session, Tenant
from pml.streams.cli.session import load_settings, person, run_async

if TYPE_CHECKING:
    from pml.schemas.commands import RunScore
    from pml.streams.scoring import Scored
    from pml.streams.settings import Settings


def score(
    run_id: RunId,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What is judged, as helpful.")],
    *,
    number: Annotated[float | None, typer.Option(help="The value, as a number.")] = None,
    category: Annotated[str | None, typer.Option(help="The value, as a word or two.")] = None,
    boolean: Annotated[bool | None, typer.Option("--true/--false", help="The value, as yes or no.")] = None,
    source: Annotated[str | None, typer.Option(help="What judged; human, unless you say.")] = None,
    comment: Annotated[str, typer.Option(help="Why; kept in the log.")] = "",
    command: Annotated[str | None, typer.Option(help="An id: the same one is obeyed once.")] = None,
    session: Session = None,
    tenant: Tenant = "local",
    json: Json = False,
) -> None:
    """Say how good a run was, also long after its end; a name that is scored again has the newer value.

    Examples: pml run score run_1 helpful --true · pml run score run_1 quality --number 0.8 --source evaluator
    """
    from pml.schemas.commands import RunScore
    from pml.streams.cli.run_decisions import checked

    if sum(value is not None for value in (number, category, boolean)) != 1:
        raise typer.BadParameter("say one of --number, --category, --true and --false")
    value = {"number": number, "category": category, "boolean": boolean}
    data = checked(RunScore, {"name": name, **value, "source": source, "comment": comment})
    ids = {"session_id": session, "command_id": command, "tenant": tenant}
    scored = run_async(_score(load_settings(), run_id, data, ids)).as_dict()
    if json:
        print_json(scored)
        return
    told = scored.get("number", scored.get("category", scored.get("boolean")))
    say(f"{run_id} {scored['status']} {name} {told}")


async def _score(settings: Settings, run_id: str, data: RunScore, ids: dict[str, Any]) -> Scored:
    from pml.streams.client import IntentProducer
    from pml.streams.scoring import score_run

    async with IntentProducer(settings) as producer:
        return await score_run(producer, run_id, data, **ids, principal=person(), timeout_s=ANSWER_S)

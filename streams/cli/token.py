"""`pml token create|list|revoke`: who may come in by HTTP, and what they may."""

from __future__ import annotations

from typing import Annotated

import typer

from pml.streams.cli.output import Json, note, print_json, print_table
from pml.streams.cli.session import load_settings

app = typer.Typer(no_args_is_help=True, help="Tokens for the HTTP door.")
SCOPES = "runs:read, runs:write, approvals:write, tools:admin, dlq:admin"


@app.callback()
def _group() -> None:
    """Tokens for the HTTP door."""


@app.command()
def create(
    principal: Annotated[
        str, typer.Argument(help="Whose it is: `agent:NAME`, or `person:NAME`, who alone may approve.")
    ],
    *,
    scope: Annotated[list[str], typer.Option("--scope", help=f"What it may, several times: {SCOPES}.")],
    tenant: Annotated[str, typer.Option(help="Whose runs it sees.")] = "local",
    json: Json = False,
) -> None:
    """Make a token and print it, once; only a hash of it is kept.

    As soon as there is one, nobody comes in without one, also on loopback.

    Examples: pml token create agent:ci --scope runs:read --scope runs:write ·
    pml token create person:ada --scope runs:read --scope approvals:write --json
    """
    import time

    from pml.schemas.times import to_rfc3339
    from pml.streams.gateway.tokens import TokenFile

    created_at = to_rfc3339(time.time_ns() // 1_000_000)
    settings = load_settings()
    token = TokenFile(settings.data_dir).create(tenant, principal, scope, created_at)  # type: ignore[arg-type]
    if json:
        print_json({"token": token, "tenant": tenant, "principal": principal, "scopes": scope})
        return
    typer.echo(token)
    note("keep it: it is not shown again")


@app.command("list")
def list_(json: Json = False) -> None:
    """List the tokens there are: whose, what they may, since when.

    Examples: pml token list · pml token list --json
    """
    from pml.streams.gateway.tokens import TokenFile

    tokens = TokenFile(load_settings().data_dir).all()
    if json:
        items = [item.model_dump(exclude={"secret_hash"}) for item in tokens]
        print_json({"items": items, "next_cursor": None})
        return
    columns = ("token", "tenant", "principal", "scopes", "created at")
    rows = [(t.token_id, t.tenant, t.principal, " ".join(t.scopes), t.created_at) for t in tokens]
    print_table(columns, rows)


@app.command()
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="TOKEN", help="Its id: the part after `pml_`.")],
    json: Json = False,
) -> None:
    """Take a token away: whoever uses it is refused at once.

    Example: pml token revoke 3f9c01d2ab45
    """
    from pml.streams.gateway.tokens import TokenFile

    token = TokenFile(load_settings().data_dir).revoke(token_id)
    if json:
        print_json({"revoked": token.token_id})
        return
    note(f"{token.token_id} of {token.principal} is revoked")

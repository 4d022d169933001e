"""`pml approvals list|approve|reject`: a person's word about single calls."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from pml.streams.cli.output import Json, print_json, print_table, shortened
from pml.streams.cli.run_decisions import Reason, Tenant, Wait, decide
from pml.streams.cli.session import load_settings, run_async

app = typer.Typer(no_args_is_help=True, help="Calls that wait for a person.")
ApprovalId = Annotated[str, typer.Argument(metavar="APPROVAL_ID")]
Session = Annotated[str | None, typer.Option(help="Read the log of this session instead of ClickHouse.")]


@app.callback()
def _group() -> None:
    """Calls that wait for a person."""


@app.command("list")
def list_approvals(
    *,
    session: Session = None,
    tenant: Tenant = "local",
    everything: Annotated[bool, typer.Option("--all", help="Also those that were settled.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="The newest so many.")] = 50,
    json: Json = False,
) -> None:
    """List calls that wait for a person: what they would do, with which arguments, until when.

    Examples: pml approvals list · pml approvals list --all --json · pml approvals list --session ses_1
    """
    from pml.streams.approval_list import list_approvals as read_approvals

    rows = run_async(read_approvals(load_settings(), tenant, session, everything, limit))
    if json:
        print_json(rows)
        return
    columns = ("approval", "status", "run", "task", "tool", "effect", "touches", "arguments", "expires at")
    print_table(columns, (_row(row) for row in rows))


@app.command()
def approve(
    approval_id: ApprovalId,
    *,
    session: Session = None,
    tenant: Tenant = "local",
    reason: Reason = "",
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Let one call run, with exactly the arguments that were shown. Exit code 3 where it does not wait.

    Examples: pml approvals approve apr_1 · pml approvals approve apr_1 --reason 'it is old' --wait
    """
    _decide("approve", approval_id, session, tenant, reason, wait=wait, as_json=json)


@app.command()
def reject(
    approval_id: ApprovalId,
    *,
    session: Session = None,
    tenant: Tenant = "local",
    reason: Reason = "",
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Let one call not run; its task fails with APPROVAL_REJECTED.

    Examples: pml approvals reject apr_1 --reason 'not that file' · pml approvals reject apr_1 --session ses_1
    """
    _decide("reject", approval_id, session, tenant, reason, wait=wait, as_json=json)


def _decide(
    decision: Literal["approve", "reject"],
    approval_id: str,
    session: str | None,
    tenant: str,
    reason: str,
    *,
    wait: bool,
    as_json: bool,
) -> None:
    from pml.schemas.commands import ApprovalDecide
    from pml.streams.approval_list import find_approval

    asked = run_async(find_approval(load_settings(), tenant, approval_id, session))
    said = ApprovalDecide(approval_id=approval_id, decision=decision, reason=reason)
    decide(asked["run_id"], asked["session_id"], tenant, said, wait=wait, as_json=as_json)


def _row(row: dict[str, Any]) -> tuple[Any, ...]:
    import orjson

    arguments = shortened(orjson.dumps(row["arguments"]).decode(), 60)
    who = ("approval_id", "status", "run_id", "task_id", "tool", "effect")
    return (*(row[name] for name in who), " ".join(row["touches"]), arguments, row["expires_at"])

"""`pml approvals list|approve|reject`: a person's word about single calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from pml.streams.cli.output import Json, note, print_json, print_table, shortened
from pml.streams.cli.run_decisions import Reason, Tenant, Wait, decide
from pml.streams.cli.session import load_settings, run_async
from pml.streams.printable import printable

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

    A request about several calls has a line for each; `from` says where arguments come from that nobody
    knows yet.

    Examples: pml approvals list · pml approvals list --all --json · pml approvals list --session ses_1
    """
    from pml.streams.approval_list import list_approvals as read_approvals

    rows = run_async(read_approvals(load_settings(), tenant, session, everything, limit))
    if json:
        print_json(rows)
        return
    columns = ("approval", "status", "run", "task", "tool", "effect", "touches", "arguments", "expires at")
    print_table(columns, (line for row in rows for line in _lines(row)))
    if not rows and session is None:
        note("ClickHouse is a moment behind the log; with --session the log itself is read")


@app.command()
def approve(
    approval_id: ApprovalId,
    *,
    session: Session = None,
    tenant: Tenant = "local",
    computed: Annotated[
        bool, typer.Option("--computed", help="Also calls whose arguments were not known yet.")
    ] = False,
    reason: Reason = "",
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Let calls run, with exactly the arguments that were shown. Exit code 3 where they do not wait.

    Examples: pml approvals approve apr_1 --reason 'it is old' --wait · pml approvals approve apr_1 --computed
    """
    said = {"decision": "approve", "reason": reason, "computed": computed}
    _decide(approval_id, session, tenant, said, wait=wait, as_json=json)


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
    """Let calls not run: their task, or the run that has not begun, fails with APPROVAL_REJECTED.

    Examples: pml approvals reject apr_1 --reason 'not that file' · pml approvals reject apr_1 --session ses_1
    """
    said = {"decision": "reject", "reason": reason}
    _decide(approval_id, session, tenant, said, wait=wait, as_json=json)


def _decide(
    approval_id: str,
    session: str | None,
    tenant: str,
    said: dict[str, Any],
    *,
    wait: bool,
    as_json: bool,
) -> None:
    from pml.schemas.commands import ApprovalDecide
    from pml.streams.approval_list import find_approval

    asked = run_async(find_approval(load_settings(), tenant, approval_id, session))
    word = ApprovalDecide.model_validate({**said, "approval_id": approval_id, "via": "command_line"})
    decide(asked["run_id"], asked["session_id"], tenant, word, wait=wait, as_json=as_json)


def _lines(row: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """A line for each call of a request."""
    from pml.streams.approval_text import calls_of, shown_arguments

    for call in calls_of(row):
        who = (row["approval_id"], row["status"], row["run_id"], call["task_id"] or "any")
        tool, touches = (printable(text, keep="") for text in (call["tool"], " ".join(call["touches"])))
        yield (*who, tool, call["effect"], touches, shortened(shown_arguments(call), 60), row["expires_at"])
    if row["omitted"]:
        yield (row["approval_id"], row["status"], row["run_id"], f"and {row['omitted']} more, later")

"""What agents and tools wrote steers no terminal; what PML styles keeps its style."""

from __future__ import annotations

import io
from typing import Any

import orjson
import pytest
from rich.console import Console
from rich.text import Text

from pml.clickhouse.client import Rows
from pml.schemas.errors import PMLError
from pml.streams import approval_list
from pml.streams.cli import output
from pml.streams.cli.query import print_csv
from pml.streams.cli.submit import print_run
from tests.streams.cli.conftest import Pml

HOSTILE = "notes.md\x1b[2K\x1b[1A\x9b2K\x07\r\u202egpj\u2066\u200b\U000e0041 x"
SHOWN = r"notes.md\x1b[2K\x1b[1A\x9b2K\x07\x0d\u202egpj\u2066\u200b\U000e0041 x"


def steers(text: str) -> set[str]:
    return {letter for letter in text if not letter.isprintable() and letter not in "\n\t"}


def test_what_steers_a_terminal_is_written_out() -> None:
    assert output.printable(HOSTILE) == SHOWN
    assert output.printable("\ud800") == r"\ud800"


@pytest.mark.parametrize("text", ["", "naïve 日本 → ✓", "two\nlines\tand a tab", "[bold]no markup[/bold]"])
def test_what_can_be_read_stays_as_it_is(text: str) -> None:
    assert output.printable(text) == text


def test_lines_are_kept_only_where_they_may_be() -> None:
    assert output.printable("a\n\tb", keep="") == r"a\x0a\x09b"


def test_a_short_text_is_printable_and_as_short_as_asked() -> None:
    assert output.shortened(f"a\n{HOSTILE}", 200) == f"a {SHOWN}"
    assert output.shortened("\x1b" * 80, 10) == r"\x1b\x1b\…"
    # str.split() takes these for white space: they are shown nonetheless.
    assert output.shortened("a\x1c\x85b") == r"a\x1c\x85b"


def test_notes_and_results_are_printable(capsys: pytest.CaptureFixture[str]) -> None:
    output.note(f"\n{HOSTILE}")
    output.say(HOSTILE)
    told = capsys.readouterr()
    assert (told.out, told.err) == (f"{SHOWN}\n", f"\n{SHOWN}\n")


@pytest.mark.parametrize("value", [HOSTILE, {HOSTILE: [HOSTILE, 1, None]}, '\\ and "quotes" \U0001f600'])
@pytest.mark.parametrize("tell", [output.print_json, output.print_json_line])
def test_json_has_one_value_and_steers_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tell: Any, value: Any
) -> None:
    tell(value)
    exact = capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    tell(value)
    seen = capsys.readouterr().out
    assert orjson.loads(exact) == orjson.loads(seen) == value
    assert not steers(seen)


def test_json_of_what_is_no_utf_8_is_told_nonetheless(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"\udcff": ("a\udcfe", {"b": ["\udcfd", 1]})})
    told = orjson.loads(capsys.readouterr().out)
    assert told == {r"\udcff": [r"a\udcfe", {"b": [r"\udcfd", 1]}]}


@pytest.mark.parametrize("arguments", [("--\udcff",), ("run", "list", "\udcff"), ("submit", "\udcff.yaml")])
def test_an_argument_that_is_no_utf_8_is_told_to_programs(pml: Pml, arguments: tuple[str, ...]) -> None:
    told = pml(*arguments, "--json")
    assert told.exit_code == 2
    assert r"\udcff" in orjson.loads(told.stdout)["error"]["message"]


def test_csv_is_exact_in_a_pipe_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Rows(("intent", "calls"), ("String", "UInt64"), [(HOSTILE, 1)])
    print_csv(rows)
    assert HOSTILE in capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_csv(rows)
    assert capsys.readouterr().out.split("\r\n")[1] == f"{SHOWN},1"


def test_source_text_is_exact_in_a_pipe_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output.say_source("a = '\xa0\x1b'")
    assert capsys.readouterr().out == "a = '\xa0\x1b'\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    output.say_source("a = '\xa0\x1b'")
    assert capsys.readouterr().out == "a = '\\xa0\\x1b'\n"


def test_a_table_keeps_its_own_styles_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, color_system="standard", width=200)
    monkeypatch.setattr(output, "stdout_console", lambda: console)
    output.print_table(("a\x9b2K", "state"), [("\x1b[2K", Text("up", style="green"))], "of \x1b[1A")
    told = written.getvalue()
    assert "\x1b[32mup" in told
    assert [part for part in ("\x1b[2K", "\x1b[1A", "\x9b") if part in told] == []
    assert r"\x1b[2K" in told
    assert r"of \x1b[1A" in told


def test_a_request_to_a_person_conceals_nothing(pml: Pml, monkeypatch: pytest.MonkeyPatch) -> None:
    call = {"task_id": "n1", "effect": "write", "tool": "files:write"}
    about = {"touches": [f"files:{HOSTILE}", "files:b\nfake"], "arguments": {"path": "\x9b\u202e"}}
    asked = {"approval_id": "apr_1", "status": "open", "run_id": "run_1", "omitted": 0, "expires_at": "then"}

    async def listed(*_: Any) -> Any:
        return [{**asked, "calls": [{**call, **about}]}]

    monkeypatch.setattr(approval_list, "list_approvals", listed)
    monkeypatch.setattr(output, "PIPE_WIDTH", 400)
    shown = pml("approvals", "list").stdout
    assert not steers(shown)
    assert rf"files:{SHOWN} files:b\x0afake" in shown
    assert r'{"path":"\x9b\u202e"}' in shown


def test_an_error_is_printable(pml: Pml, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: Any) -> Any:
        raise PMLError(HOSTILE)

    monkeypatch.setattr(approval_list, "list_approvals", fails)
    told = pml("approvals", "list")
    assert not steers(told.stderr)
    assert f"pml: {SHOWN}" in told.stderr


def test_a_run_is_printable(capsys: pytest.CaptureFixture[str]) -> None:
    error = {"code": "TOOL_FAILED", "message": HOSTILE}
    about = {"run_id": "run_1", "session_id": "ses_1", "status": "failed", "duration_ms": 1, "counts": {}}
    asked = {
        "approval_id": "apr_1",
        "tool": "files:write",
        "effect": "write",
        "arguments": {"path": "\x9b"},
        "message": HOSTILE,
        "expires_at": "then",
    }
    tasks = {"n1": {"status": "failed", "error": error}}
    print_run({**about, "results": tasks, "waits_for": {"apr_1": asked}, "error": error, "result": "\u202e"})
    shown = capsys.readouterr().out
    assert not steers(shown)
    assert f"TOOL_FAILED: {SHOWN}" in shown
    assert f"({SHOWN})" in shown

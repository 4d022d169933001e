import subprocess
import sys
from pathlib import Path

import orjson
import pytest
import yaml

from pml.schemas.errors import (
    BrokerUnavailable,
    ConfigurationError,
    PMLError,
    PrerequisiteError,
    QueryError,
    StoreUnavailable,
    WaitedTooLong,
    WorkflowInvalid,
)
from pml.schemas.permissions import PermissionFile
from pml.schemas.workflow import Workflow
from pml.streams.bridge.servers_file import read_servers
from pml.streams.cli.exits import exit_code
from pml.streams.local.stack import WORKERS
from pml.streams.settings import Settings
from tests.streams.cli.conftest import Pml

STEERING = "\x1b]0;owned\x07"
COMMANDS = [
    *(["up"], ["down"], ["status"], ["doctor"], ["config"], ["worker"], ["submit"], ["demo"], ["init"]),
    *(["analyze"], ["token", "create"], ["token", "list"], ["token", "revoke"]),
    *(["migrate"], ["query"], ["metrics"], ["run", "list"], ["run", "show"], ["run", "trace"]),
    *(["events", "tail"], ["events", "dump"], ["dlq", "list"], ["dlq", "show"], ["tools", "list"]),
    *(
        ["tools", "draft"],
        ["tools", "approve"],
        ["speculation", "on"],
        ["speculation", "off"],
        ["schema", "export"],
    ),
    *(["thresholds", "list"], ["thresholds", "set"], ["thresholds", "unset"], ["thresholds", "plot"]),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(pml: Pml, command: list[str]) -> None:
    result = pml(*command, "--help")
    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert command == ["worker"] or "--json" in result.stdout


@pytest.mark.parametrize(
    "command",
    [
        *(["run", "list"], ["query", "SELECT 1"], ["metrics"], ["events", "dump"], ["dlq", "list"]),
        *(["tools", "list"], ["speculation", "off"], ["migrate"], ["run", "show", "run_1"]),
        *(["thresholds", "list"], ["thresholds", "set", "0.9"], ["thresholds", "plot"]),
        ["run", "show", "run_1", "--session", "ses_1"],
    ],
    ids=" ".join,
)
def test_without_a_stack_each_command_says_so_in_one_line_and_ends_with_4(
    pml: Pml, command: list[str]
) -> None:
    result = pml(*command, "--json")
    assert result.exit_code == 4
    assert len(result.stderr.splitlines()) == 1
    assert "pml up" in result.stderr
    assert orjson.loads(result.stdout)["error"]["retryable"] is True


def test_a_store_that_is_away_is_told_with_the_way_round_it(pml: Pml) -> None:
    assert "--session" in pml("run", "show", "run_1").stderr


def test_a_wrong_setting_is_a_mistake_of_usage(pml: Pml) -> None:
    Path("pml.toml").write_text("[kafka]\nprot = 1\n")
    result = pml("status")
    assert result.exit_code == 2
    assert "kafka.prot" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "--since", "bad"),
        ("replay", "--from", "absent.jsonl"),
        ("replay", "--workers", "0"),
        ("run", "show"),
        ("run", "list", "--no-such-option"),
        ("run", "score", "run_1", "quality", "--number", "inf"),
        ("run", "score", "run_1", "", "--true"),
        ("--no-such-option", "run", "list"),
        ("launch",),
    ],
)
def test_a_mistake_of_usage_is_told_to_programs_too(pml: Pml, arguments: tuple[str, ...]) -> None:
    told = pml(*arguments, "--json")
    error = orjson.loads(told.stdout)["error"]
    assert (told.exit_code, error["code"], error["retryable"]) == (2, "USAGE", False)
    assert error["message"]
    assert "Usage: pml" in told.stderr
    assert pml(*arguments).stdout == ""


def test_an_option_before_the_command_is_a_mistake_that_programs_are_told(pml: Pml) -> None:
    told = pml("--json", "run", "list")
    assert (told.exit_code, orjson.loads(told.stdout)["error"]["code"]) == (2, "USAGE")


@pytest.mark.parametrize(
    "arguments", [("replay", "--from", STEERING), (STEERING,), ("run", "list", STEERING)]
)
def test_what_a_mistake_quotes_steers_no_terminal(pml: Pml, arguments: tuple[str, ...]) -> None:
    told = pml(*arguments)
    assert (told.exit_code, "\\x1b]0;owned" in told.stderr) == (2, True), told.stderr
    assert "\x1b" not in told.stderr


def test_what_is_no_command_is_a_mistake_of_usage(pml: Pml) -> None:
    assert pml("launch").exit_code == 2
    assert pml("run", "show").exit_code == 2


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PMLError("x"), 1),
        (PrerequisiteError("x"), 1),
        (ConfigurationError("x"), 2),
        (QueryError("x"), 2),
        (WorkflowInvalid("CYCLE", "x"), 3),
        (BrokerUnavailable("x"), 4),
        (StoreUnavailable("x"), 4),
        (WaitedTooLong("x"), 5),
    ],
)
def test_exit_codes_are_those_of_the_contract(error: PMLError, code: int) -> None:
    assert exit_code(error) == code


def test_help_does_not_load_what_only_commands_need() -> None:
    program = (
        "import sys; sys.argv = ['pml', '--help']\n"
        "from pml.streams.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'aiokafka', 'faust', 'mcp', 'pydantic', 'chdb', 'clickhouse_connect'} & set(sys.modules)\n"
        "sys.exit(' '.join(heavy) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_config_shows_values_with_their_origin_and_masks_secrets(
    pml: Pml, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLICKHOUSE_URL", "http://user:tulip@store:8123")
    monkeypatch.setenv("PML_KAFKA__PORT", "19")
    shown = pml("config", "--json")
    entries = orjson.loads(shown.stdout)
    assert entries["kafka.port"] == {"value": 19, "origin": "PML_KAFKA__PORT"}
    assert entries["clickhouse.url"] == {"value": "********", "origin": "CLICKHOUSE_URL"}
    assert entries["bridge.concurrency"]["origin"] == "default"
    assert "tulip" not in shown.stdout + pml("config").stdout


def test_init_writes_files_that_everything_else_reads(pml: Pml) -> None:
    assert pml("init", "project").exit_code == 0
    folder = Path("project")
    assert read_servers(folder / "mcp-servers.yaml").enabled().keys() == {"time"}
    PermissionFile.model_validate(yaml.safe_load((folder / "mcp-permissions.yaml").read_text()))
    Workflow.model_validate(yaml.safe_load((folder / "workflow.yaml").read_text()))
    (folder / "pml.toml").rename("pml.toml")
    assert Settings.load().mcp_servers == Path.cwd() / "mcp-servers.yaml"
    (folder / "workflow.yaml").write_text("mine")
    again = pml("init", "project", "--json")
    assert orjson.loads(again.stdout)["written"] == ["pml.toml"]
    assert (folder / "workflow.yaml").read_text() == "mine"


def test_init_with_examples_writes_what_they_need(pml: Pml) -> None:
    folder = Path("try")
    written = orjson.loads(pml("init", "try", "--examples", "--json").stdout)["written"]
    assert read_servers(folder / "mcp-servers.yaml").enabled().keys() == {"files", "git", "time"}
    permissions = PermissionFile.model_validate(yaml.safe_load((folder / "mcp-permissions.yaml").read_text()))
    workflows = [path for kind in ("workflows", "decisions") for path in sorted((folder / kind).iterdir())]
    assert len(workflows) == 10
    for path in workflows:
        tools = {task.tool for task in Workflow.model_validate(yaml.safe_load(path.read_text())).tasks}
        assert all(permissions.find(tool or "") for tool in tools)
    assert (folder / "world" / "package.json").is_file()
    assert (folder / "repository" / ".git").is_dir()
    (folder / "world" / "package.json").write_text("mine")
    again = orjson.loads(pml("init", "try", "--examples", "--json").stdout)
    assert len(written) == 15
    assert again["written"] == []
    assert (folder / "world" / "package.json").read_text() == "mine"


def test_schemas_are_one_document_or_one_file_each(pml: Pml) -> None:
    whole = orjson.loads(pml("schema", "export").stdout)
    assert {"workflow", "run.start", "task.completed", "call.run", "catalog.tool"} <= whole.keys()
    assert whole["run.start"]["properties"]["type"] == {"const": "run.start"}
    assert pml("schema", "export", "out").exit_code == 0
    assert {path.stem for path in Path("out").iterdir()} == whole.keys()


def test_status_of_nothing_says_how_to_begin(pml: Pml) -> None:
    result = pml("status", "--json")
    assert result.exit_code == 4
    status = orjson.loads(result.stdout)
    assert (status["up"], status["ready"]) == (False, False)
    assert {part["name"]: part["state"] for part in status["parts"]} == {
        "kafka": "unreachable",
        "clickhouse": "unreachable",
        **{role: "absent" for roles in WORKERS for role in roles},
    }
    assert pml("down").exit_code == 0


def test_doctor_is_red_where_something_is_missing_and_says_what_to_do(pml: Pml) -> None:
    result = pml("doctor", "--json")
    assert result.exit_code == 1
    checks = {check["name"]: check for check in orjson.loads(result.stdout)["checks"]}
    assert not checks["MCP servers"]["good"]
    assert "pml init" in checks["MCP servers"]["remedy"]
    assert checks["Java"]["good"]
    assert checks["Deno"]["good"]
    assert checks["Deno"]["used"], "it is installed with the tests"
    assert (checks["servers at URLs"]["good"], checks["servers at URLs"]["used"]) == (True, False)
    assert all(check["remedy"] for check in checks.values() if not check["good"])
    pml("init")
    cured = pml("doctor")
    assert cured.exit_code == 0, cured.stdout


def test_options_that_would_be_ignored_are_refused(pml: Pml) -> None:
    result = pml("demo", "--seed", "3", "--latency-ms", "0")
    assert result.exit_code == 2
    assert "--seed, --latency-ms: only with --learn" in result.stderr

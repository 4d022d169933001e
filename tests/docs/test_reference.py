"""The tables of the reference agree with the code, in both directions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from enum import Enum
from importlib import import_module
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr
from typer.main import get_command

from pml.processors.speculation.budget import BUDGETS
from pml.schemas.calls import CALLS, CLAIMS, OUTCOMES, CallRecord
from pml.schemas.catalog import CATALOG
from pml.schemas.commands import COMMANDS
from pml.schemas.errors import PMLError
from pml.schemas.events import EVENTS, Event
from pml.schemas.permissions import Permission
from pml.schemas.topics import DAY_MS, HOUR_MS, Topics, TopicSpec
from pml.schemas.workflow import Task, Workflow
from pml.streams import telemetry
from pml.streams.bridge.server_specs import HttpServer, StdioServer
from pml.streams.cli import exits
from pml.streams.cli.app import app
from pml.streams.settings import Settings
from pml.streams.status import role_inputs
from tests.docs import pages

CONFIGURATION, PERMISSIONS = "docs/reference/configuration.md", "docs/reference/permissions.md"
TOPICS, WORKFLOW, ERRORS = (
    "docs/reference/topics.md",
    "docs/reference/workflow.md",
    "docs/reference/errors.md",
)
ROOMS = ("schemas", "processors", "streams", "clickhouse")
SETTINGS_PREFIXES = ("kafka", "clickhouse", "timeouts", "speculation", "bridge", "orchestrator", "sink")


def leaves(model: type[BaseModel], above: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Each setting by its path, with its default."""
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from leaves(inner, (*above, name))
        else:
            yield ".".join((*above, name)), field.default


def test_settings() -> None:
    documented = {
        pages.codes(row["setting"])[0]: (pages.codes(row["default"]) or [""])[0]
        for row in pages.table(CONFIGURATION, "setting")
    }
    assert documented == {name: "" if default is None else str(default) for name, default in leaves(Settings)}


def test_secrets_are_told_with_the_variable_of_their_file() -> None:
    rows = {
        pages.codes(row["setting"])[0]: row["what it is"] for row in pages.table(CONFIGURATION, "setting")
    }
    for name, row in rows.items():
        field: Any = Settings
        for part in name.split("."):
            field = field.model_fields[part].annotation
        secret = SecretStr in getattr(field, "__args__", (field,))
        variable = f"PML_{'__'.join(name.split('.')).upper()}_FILE"
        assert (variable in row) is secret, name


def test_fields_of_a_server() -> None:
    rows = pages.table(CONFIGURATION, "field")
    documented = {name for row in rows for name in pages.codes(row["field"])}
    assert documented == (set(StdioServer.model_fields) | set(HttpServer.model_fields)) - {"type"}


def test_fields_of_a_permission() -> None:
    rows = pages.table(PERMISSIONS, "field")
    assert {pages.codes(row["field"])[0] for row in rows} == set(Permission.model_fields)
    for row in rows:
        name, default = (
            pages.codes(row["field"])[0],
            Permission.model_fields[pages.codes(row["field"])[0]].default,
        )
        if default is not None and default != {}:
            said = "true" if default is True else "false" if default is False else str(default)
            written = pages.codes(row["default"])
            assert written == [said] or (name == "open_world" and not written), name


def test_budgets() -> None:
    rows = {pages.codes(row[""])[0]: row for row in pages.table(PERMISSIONS, "")}
    assert rows.keys() == BUDGETS.keys()
    for name, budget in BUDGETS.items():
        numbers = [int(rows[name][column]) for column in ("at once", "calls", "wasted tool-seconds an hour")]
        assert numbers == [budget.concurrent, budget.calls, budget.wasted_ms_per_hour // 1000]


def test_fields_of_a_workflow_and_its_tasks() -> None:
    documented = [pages.codes(row["field"])[0] for row in pages.table(WORKFLOW, "field")]
    assert documented == [*Workflow.model_fields, *Task.model_fields]


def told(retention_ms: int, compacted: bool) -> str:
    """A retention in the words of the page."""
    if compacted:
        return "compacted"
    if retention_ms < 0:
        return "for ever"
    days, rest = divmod(retention_ms, DAY_MS)
    return f"{days} days" if not rest else f"{retention_ms // HOUR_MS} hours"


def test_topics() -> None:
    rows = {pages.codes(row["topic"])[0]: row for row in pages.table(TOPICS, "topic") if "retention" in row}
    specs: dict[str, TopicSpec] = {spec.name: spec for spec in Topics().specs()}
    assert rows.keys() == specs.keys()
    for name, spec in specs.items():
        assert int(rows[name]["partitions"]) == spec.partitions, name
        assert rows[name]["retention"] == told(spec.retention_ms, spec.compacted), name
        assert rows[name]["record at most"] == f"{spec.max_message_bytes >> 20} MiB", name


def test_groups() -> None:
    for row in pages.table(TOPICS, "group"):
        read = [f"pml.{name.strip()}" for name in row["reads"].split(",")]
        assert pages.codes(row["group"]) == [f"pml.{row['role']}"]
        assert tuple(read) == role_inputs(Topics())[row["role"]]


def test_events_with_their_versions_and_fields() -> None:
    rows = [row for row in pages.table(TOPICS, "type") if "what happened" in row]
    documented = {
        pages.codes(row["type"])[0]: (int(row["version"]), pages.codes(row["data"])) for row in rows
    }
    assert documented == {kind: (model.VERSION, list(model.model_fields)) for kind, model in EVENTS.items()}


def test_the_envelope_of_events() -> None:
    documented = [name for row in pages.table(TOPICS, "field") for name in pages.codes(row["field"])]
    assert sorted(documented) == sorted(Event.model_fields)


def test_commands() -> None:
    rows = [row for row in pages.table(TOPICS, "type") if "what happened" not in row]
    documented = {
        pages.codes(row["type"])[0]: (int(row["version"]), pages.codes(row["data"])) for row in rows
    }
    assert documented == {kind: (model.VERSION, list(model.model_fields)) for kind, model in COMMANDS.items()}


def test_calls_outcomes_and_claims() -> None:
    column = "fields besides `call_id`, `tenant`, `session_id`, `traceparent`"
    rows = [row for row in pages.table(TOPICS, "topic") if "type" in row]
    documented = {pages.codes(row["type"])[0]: pages.codes(row[column]) for row in rows}
    common = set(CallRecord.model_fields)
    models = {**CALLS, **OUTCOMES, **CLAIMS}
    own = {
        kind: [name for name in model.model_fields if name not in common] for kind, model in models.items()
    }
    assert documented == own


def test_kinds_of_the_catalog() -> None:
    rows = pages.table(TOPICS, "kind of `pml.catalog`")
    documented = {
        pages.codes(row["kind of `pml.catalog`"])[0]: (int(row["version"]), pages.codes(row["data"]))
        for row in rows
    }
    assert documented == {kind: (model.VERSION, list(model.model_fields)) for kind, model in CATALOG.items()}


# Where the code makes an error: the function, and the position of the code among its arguments.
MAKERS = {
    **dict.fromkeys(("WorkflowInvalid", "Refusal", "tool_error", "as_error", "known"), (0,)),
    **dict.fromkeys(("refused", "cancel"), (1,)),
    "failed": (0, 1),
}
# The types of errors, which the same functions take, and are no codes.
TYPES = {"PERMISSION", "VALIDATION", "NETWORK", "UNKNOWN"}
_CODE = re.compile(r"[A-Z]{2,}(_[A-Z]+)*")


def sources() -> Iterator[ast.AST]:
    """The modules of all rooms."""
    for room in ROOMS:
        for file in (pages.ROOT / room).rglob("*.py"):
            yield ast.parse(file.read_text(encoding="utf-8"))


def texts(nodes: Iterable[ast.AST]) -> set[str]:
    """The constant texts among these nodes that could be codes."""
    values = {node.value for node in nodes if isinstance(node, ast.Constant)}
    return {value for value in values if isinstance(value, str) and _CODE.fullmatch(value)}


def made_codes() -> set[str]:
    """Every code that the source gives an error: `code = …`, `code=…`, or an argument of a maker."""
    return texts(node for tree in sources() for node in _given(tree)) - TYPES


def _given(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id="code")], value=value):
                yield value
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args, keywords=keywords):
                yield from (keyword.value for keyword in keywords if keyword.arg == "code")
                yield from (args[at] for at in MAKERS.get(name.lstrip("_"), ()) if at < len(args))


def test_error_codes() -> None:
    documented = {code for row in pages.table(ERRORS, "code") for code in pages.codes(row["code"])}
    assert made_codes() <= documented
    assert documented <= texts(node for tree in sources() for node in ast.walk(tree))


def test_exit_codes() -> None:
    documented = {int(row["code"]) for row in pages.table(ERRORS, "code") if row["code"].isdigit()}
    assert documented == {
        value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)
    }


def error_classes(root: type[PMLError] = PMLError) -> Iterator[type[PMLError]]:
    """The whole tree of errors."""
    yield root
    for kind in root.__subclasses__():
        yield from error_classes(kind)


def test_the_exit_code_of_each_error_of_the_command_line() -> None:
    documented = {
        pages.codes(row["code"])[0]: int(row["exit"]) for row in pages.table(ERRORS, "code") if "exit" in row
    }
    for module in (
        *("streams.local.supervisor", "streams.run_history", "streams.worker"),
        *("streams.gateway.tokens", "streams.requeue", "streams.learning.training"),
        *("streams.learning.artefacts", "streams.bridge.predict", "streams.demo.learning"),
        *("streams.learning.backtesting", "streams.learning.counted_runs", "streams.replay.workers"),
    ):
        import_module(f"pml.{module}")
    found = {
        kind.code: exits.exit_code(kind("only its kind counts"))
        for kind in error_classes()
        if kind.code in documented
    }
    assert found == documented


def commands(command: Any, above: tuple[str, ...] = ("pml",)) -> Iterator[tuple[str, set[str]]]:
    """Each command with its options."""
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from commands(inner, (*above, name))
        return
    named = {option for item in command.params for option in (*item.opts, *item.secondary_opts)}
    yield " ".join(above), {option for option in named if option.startswith("-")} - {"--help", "-h"}


def test_commands_and_their_options() -> None:
    known = dict(commands(get_command(app)))
    documented: dict[str, set[str]] = {}
    for row in pages.table("docs/reference/cli.md", "command"):
        words = pages.codes(row["command"])[0].split()
        name = " ".join(word for word in words if word.islower())
        documented[name] = set(pages.codes(row["options"]))
    assert documented == known


def test_metrics_of_prometheus() -> None:
    text = pages.read("docs/operations.md")
    collectors = [item for item in vars(telemetry).values() if hasattr(item, "describe")]
    names = {
        family.name + ("_total" if family.type == "counter" else "")
        for item in collectors
        if not isinstance(item, (type, Enum))
        for family in item.describe()
    }
    assert names
    assert set(re.findall(r"`(pml_\w+)`", text)) == names


def test_the_settings_that_pages_name_exist() -> None:
    known = {name for name, _ in leaves(Settings)}
    for name in pages.NAMES:
        for code in re.findall(r"`([a-z]+\.[a-z_]+)`", pages.prose(name)):
            if code.partition(".")[0] in SETTINGS_PREFIXES and code not in EVENTS:
                assert code in known or code.endswith((".log", ".py")), f"{name}: there is no setting {code}"


@pytest.mark.parametrize("page", ["docs/reference/topics.md", "docs/operations.md", "ARCHITECTURE.md"])
def test_files_that_pages_name_in_the_rooms_exist(page: str) -> None:
    for code in re.findall(
        r"`((?:streams|processors|schemas|clickhouse|deploy|tests)/[\w/.]+)`", pages.prose(page)
    ):
        assert (pages.ROOT / code).exists(), f"{page}: there is no {code}"

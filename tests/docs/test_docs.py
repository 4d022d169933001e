"""The documentation says what is so: links, commands, workflows, files and programs in it."""

from __future__ import annotations

import ast
import re
import tomllib
from typing import Any

import click
import pytest
import yaml
from typer.main import get_command

from pml.processors.workflow.check import checked_graph
from pml.schemas.catalog import ServerTools
from pml.schemas.identifiers import split_tool
from pml.schemas.permissions import PermissionFile
from pml.schemas.workflow import Workflow
from pml.streams.bridge.servers_file import ServersFile
from pml.streams.cli.app import app
from pml.streams.settings import Settings
from tests.docs import pages

CLI: Any = get_command(app)
DELIVERY = (
    "delivery is at least once, the log has each event once, projections are effectively once, "
    "effects happen at most once unless a tool is declared idempotent"
)


def find_command(words: list[str]) -> tuple[Any, list[str]]:
    """The command that these words name, and the words behind its name."""
    command, rest = CLI, words[1:]
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        assert rest[0] in command.commands, f"there is no command {' '.join(words)!r}"
        command, rest = command.commands[rest[0]], rest[1:]
    return command, rest


def options_of(command: Any) -> set[str]:
    """All spellings of a command's options."""
    named = {
        option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
    }
    return {option for option in named if option.startswith("-")} | {"--help", "-h"}


@pytest.mark.parametrize("name", pages.NAMES)
def test_every_relative_link_resolves(name: str) -> None:
    for target in pages.links(name):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        page = ((pages.ROOT / name).parent / path).resolve() if path else pages.ROOT / name
        assert page.exists(), f"{name}: {target} leads nowhere"
        if anchor:
            assert anchor in pages.anchors(page), f"{name}: {target} has no such heading"


@pytest.mark.parametrize("name", pages.NAMES)
def test_every_command_that_is_shown_can_be_typed(name: str) -> None:
    for words in pages.console_commands(name):
        command, rest = find_command(words)
        assert not hasattr(command, "commands"), f"{' '.join(words)} is a group"
        try:
            with command.make_context(command.name, list(rest)):
                pass
        except click.exceptions.UsageError as error:
            pytest.fail(f"{name}: {' '.join(words)}: {error.format_message()}")


@pytest.mark.parametrize("name", pages.NAMES)
def test_every_command_that_is_named_exists_with_its_options(name: str) -> None:
    for words in pages.mentioned_commands(name):
        command, rest = find_command(words)
        unknown = {word for word in rest if word.startswith("-") and len(word) > 1} - options_of(command)
        assert not unknown, f"{name}: {' '.join(words)} has no {unknown}"


@pytest.mark.parametrize("name", pages.NAMES)
def test_every_yaml_block_is_what_it_shows(name: str) -> None:
    for block in pages.blocks(name, "yaml"):
        content = yaml.safe_load(block)
        match content:
            case {"mcpServers": _}:
                assert ServersFile.model_validate(content).enabled()
            case {"tools": _}:
                assert PermissionFile.model_validate(content).tools
            case {"tasks": _}:
                check_workflow(Workflow.model_validate(content))
            case _:
                pytest.fail(f"{name}: a yaml block that is no workflow, servers file or permissions file")


def check_workflow(workflow: Workflow) -> None:
    """It could run, if its servers had its tools."""
    names = {split_tool(task.tool or "")[0] for task in workflow.tasks}
    servers = {name: ServerTools(server=name, status="unavailable") for name in names}
    assert checked_graph(workflow, servers).layers


def test_the_pages_show_and_name_commands() -> None:
    """The three tests above would pass on pages without any."""
    shown = {tuple(words[:2]) for name in pages.NAMES for words in pages.console_commands(name)}
    named = {tuple(words[:2]) for name in pages.NAMES for words in pages.mentioned_commands(name)}
    assert {("pml", "up"), ("pml", "submit"), ("pml", "query"), ("pml", "down")} <= shown
    assert {("pml", name) for name in CLI.commands} <= named


def test_a_page_shows_each_kind_of_file() -> None:
    shown = [yaml.safe_load(block) for name in pages.NAMES for block in pages.blocks(name, "yaml")]
    for kind in ("tasks", "tools", "mcpServers"):
        assert any(kind in content for content in shown), kind


@pytest.mark.parametrize("name", pages.NAMES)
def test_every_toml_block_holds_settings(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for block in pages.blocks(name, "toml"):
        (tmp_path / "pml.toml").write_text(block)
        monkeypatch.setenv("PML_CONFIG", str(tmp_path / "pml.toml"))
        monkeypatch.setenv("PML_KAFKA__SASL_PASSWORD", "only here")
        assert Settings.load().model_fields_set == set(tomllib.loads(block)) | {"kafka"}


@pytest.mark.parametrize("name", pages.NAMES)
def test_every_python_block_imports_what_exists(name: str) -> None:
    for block in pages.blocks(name, "python"):
        tree = ast.parse(block)
        imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
        exec(compile(ast.Module(imports, []), name, "exec"), {})


def test_delivery_is_told_in_the_same_words_everywhere() -> None:
    for name in ("README.md", "docs/operations.md"):
        assert DELIVERY in " ".join(pages.read(name).lower().split()), name


@pytest.mark.parametrize("name", pages.NAMES)
def test_no_page_promises_what_cannot_be_had(name: str) -> None:
    text = pages.read(name).lower()
    assert "exactly once" not in text
    assert "exactly-once" not in text


def test_the_readme_begins_with_exactly_two_commands() -> None:
    first = pages.blocks("README.md", "console")[0]
    assert [line.split("#")[0].strip() for line in first.splitlines()] == ["$ make demo", "$ make test"]


def test_the_makefile_has_what_the_pages_name() -> None:
    targets = set(re.findall(r"^([a-z]+):", pages.read("Makefile"), re.MULTILINE))
    named = {target for name in pages.NAMES for target in re.findall(r"`make ([a-z]+)", pages.read(name))}
    assert named <= targets
    assert {"demo", "test", "check"} <= named

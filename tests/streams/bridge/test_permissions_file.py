"""`mcp-permissions.yaml`: read, hashed by what it says, watched."""

from __future__ import annotations

from pathlib import Path

import pytest

from pml.schemas.errors import ConfigurationError
from pml.streams.bridge.permissions_file import PermissionsWatch, permissions_hash, read_permissions

TEXT = """
version: 1
tools:
  "git:git_log": {scope: readonly, approval: auto}
  "files:*": {scope: filesystem, approvalMode: hil, effect: write}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "mcp-permissions.yaml"
    path.write_text(TEXT)
    return path


def test_the_most_specific_entry_is_found(path: Path) -> None:
    found = read_permissions(path).find("files:write_file")
    assert found is not None
    assert (found[0], found[1].approval) == ("files:*", "hil")


def test_a_file_that_does_not_exist_allows_nothing(tmp_path: Path) -> None:
    assert read_permissions(tmp_path / "none.yaml").tools == {}


def test_the_hash_follows_what_the_file_says_and_not_how(path: Path) -> None:
    before = permissions_hash(read_permissions(path))
    path.write_text("# a comment\n" + TEXT)
    assert permissions_hash(read_permissions(path)) == before
    path.write_text(TEXT.replace("hil", "auto"))
    assert permissions_hash(read_permissions(path)) != before


def test_a_mistake_is_named(path: Path) -> None:
    path.write_text("tools: {'a:b': {approval: maybe}}")
    with pytest.raises(ConfigurationError, match=r"tools\.a:b\.approval"):
        read_permissions(path)


@pytest.mark.parametrize(
    "value", ["18446744073709551616", "{1: 2}", "!!binary eA==", "!!set {a}", "2026-01-02", ".nan", "[.inf]"]
)
@pytest.mark.parametrize(
    "rule", ["when: {size: [VALUE]}", "verify: {tool: a:c, arguments: {size: VALUE}, done: result.x}"]
)
def test_a_value_that_no_argument_can_be_is_told_and_the_last_good_file_holds(
    path: Path, rule: str, value: str
) -> None:
    asked = "'a:c': {scope: readonly, approval: auto}"
    watch = PermissionsWatch(path)
    path.write_text(f"tools: {{{asked}, 'a:b': {{effect: write, {rule.replace('VALUE', value)}}}}}")
    with pytest.raises(ConfigurationError, match="a value that JSON does not have"):
        watch.changed()
    assert "git:git_log" in watch.file.tools
    path.write_text(f"tools: {{{asked}, 'a:b': {{effect: write, {rule.replace('VALUE', '7')}}}}}")
    assert watch.changed()
    assert permissions_hash(watch.file)


def test_the_watch_tells_a_change_once(path: Path) -> None:
    watch = PermissionsWatch(path)
    assert not watch.changed()
    path.write_text(TEXT.replace("hil", "auto"))
    assert watch.changed()
    assert not watch.changed()
    path.write_text("# only a comment is new\n" + TEXT.replace("hil", "auto"))
    assert not watch.changed()


def test_a_file_that_became_wrong_leaves_the_last_good_one(path: Path) -> None:
    watch = PermissionsWatch(path)
    path.write_text("tools: [")
    with pytest.raises(ConfigurationError):
        watch.changed()
    assert not watch.changed(), "said once"
    assert "git:git_log" in watch.file.tools


def test_a_tool_that_does_not_read_cannot_be_asked_what_became_of_a_write(path: Path) -> None:
    rule = "{tool: 'files:write', done: 'result.found'}"
    path.write_text(f"tools: {{'files:write': {{scope: filesystem, verify: {rule}}}}}")
    with pytest.raises(
        ConfigurationError, match=r"tools\.files:write\.verify: files:write must have an entry"
    ):
        read_permissions(path)

from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pml.schemas.errors import ConfigurationError
from pml.streams.permissions_edit import approve, with_entry

ENTRY = {"scope": "readonly", "approval": "auto", "touches": ["git:{repo_path}"]}
COMMENTED = """\
# what we allow
version: 1
tools:
  # the clock
  "time:*": {scope: minimal, approval: auto}  # changes by itself
  "git:git_log":
    scope: readonly
    approval: hil   # asked each time
    # nothing else

  "git:git_status": {scope: readonly, approval: auto}
# the end
"""


def test_a_new_entry_leaves_every_comment_where_it_was() -> None:
    after = with_entry(COMMENTED, "files:read", ENTRY)
    lines = COMMENTED.splitlines()
    assert [line for line in after.splitlines() if line in lines] == lines
    assert yaml.safe_load(after)["tools"]["files:read"] == ENTRY
    assert after.splitlines()[-1] == "# the end"


def test_an_entry_is_replaced_in_its_place() -> None:
    after = with_entry(COMMENTED, "time:*", ENTRY)
    assert "# changes by itself" in after
    assert list(yaml.safe_load(after)["tools"]) == list(yaml.safe_load(COMMENTED)["tools"])
    block = yaml.safe_load(with_entry(COMMENTED, "git:git_log", ENTRY))["tools"]
    assert block == yaml.safe_load(COMMENTED)["tools"] | {"git:git_log": ENTRY}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment\n",
        "version: 1\n",
        "version: 1\ntools:\n",
        "version: 1\ntools: {}\n",
        "tools:   # nothing yet\n",
        "tools: {}  # nothing yet\nversion: 1\n",
        "version: 1\ntools: {'a:b': {approval: auto}}\n",
        '{"version": 1}',
        '{"version": 1, "tools": {}}',
        '{"tools": {"a:b": {"approval": "auto"}}, "version": 1}\n',
        "tools:\n    a:b: {approval: auto}",
        COMMENTED,
    ],
)
@pytest.mark.parametrize("pattern", ["git:git_log", "a:b", "weird:name with: colon"])
def test_whatever_the_file_looked_like_it_says_the_same_and_the_entry(
    tmp_path: Path, text: str, pattern: str
) -> None:
    path = tmp_path / "mcp-permissions.yaml"
    path.write_text(text)
    before = yaml.safe_load(text) or {}
    approve(path, pattern, ENTRY)
    tools = before.get("tools") or {}
    after = yaml.safe_load(path.read_text())
    assert after["tools"] == {**tools, pattern: tools.get(pattern, {}) | ENTRY}
    assert {name: after.get(name) for name in before if name != "tools"} == {
        name: value for name, value in before.items() if name != "tools"
    }
    if text.startswith("{"):
        assert orjson.loads(path.read_bytes()) == after


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)


@given(st.lists(st.tuples(texts, st.lists(texts, max_size=3)), max_size=6))
def test_many_approvals_one_after_the_other_all_hold(entries: list[tuple[str, list[str]]]) -> None:
    text, wanted = COMMENTED, dict(yaml.safe_load(COMMENTED)["tools"])
    for pattern, touches in entries:
        entry: dict[str, Any] = {"approval": "auto", "touches": touches}
        text = with_entry(text, pattern, entry)
        wanted[pattern] = entry
        assert yaml.safe_load(text)["tools"] == wanted


def test_a_missing_file_is_made_and_a_mode_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "mcp-permissions.yaml"
    approve(path, "git:git_log", ENTRY)
    path.chmod(0o640)
    approve(path, "git:git_log", {"approval": "hil"})
    assert yaml.safe_load(path.read_text())["tools"]["git:git_log"] == ENTRY | {"approval": "hil"}
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_wrong_file_or_entry_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "mcp-permissions.yaml"
    path.write_text("version: 1\ntools: [1]\n")
    with pytest.raises(ConfigurationError, match="tools"):
        approve(path, "a:b", ENTRY)
    path.write_text(COMMENTED)
    with pytest.raises(ConfigurationError, match="approval"):
        approve(path, "a:b", {"approval": "maybe"})
    assert path.read_text() == COMMENTED

from pathlib import Path

import pytest

from pml.schemas.errors import ConfigurationError
from pml.streams.cli.workflow_file import read_context, read_workflow
from tests.streams.cli.conftest import Pml


def test_context_is_json_objects_and_pairs_and_the_last_one_wins() -> None:
    given = ["repo=.", "count=20", 'deep={"a": [1]}', '{"repo": "/src", "x": null}', "text=a=b", "empty="]
    assert read_context(given) == {
        "repo": "/src",
        "count": 20,
        "deep": {"a": [1]},
        "x": None,
        "text": "a=b",
        "empty": "",
    }


@pytest.mark.parametrize("text", ["word", "=value", '{"a": }'])
def test_a_context_that_is_neither_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--context"):
        read_context([text])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"tasks: [\n", "neither YAML nor JSON"),
        (b"- a\n", "must be a mapping"),
        (b"", "must be a mapping"),
        (b"\xff\xfe\x00", "UTF-8"),
    ],
)
def test_a_file_that_holds_no_workflow_is_told(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "w.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=told):
        read_workflow(str(path))


def test_yaml_and_json_both_count(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text("tasks: [{id: n1, tool: 'a:b'}]\n")
    (tmp_path / "w.json").write_text('{"tasks": [{"id": "n1", "tool": "a:b"}]}')
    assert read_workflow(str(tmp_path / "w.yaml")) == read_workflow(str(tmp_path / "w.json"))


def test_submit_tells_a_users_mistakes_without_a_traceback(pml: Pml) -> None:
    absent = pml("submit", "nowhere.yaml")
    assert (absent.exit_code, absent.stderr) == (
        2,
        "pml: nowhere.yaml cannot be read: No such file or directory\n",
    )
    broken = pml("submit", "-", stdin="tasks: [")
    assert broken.exit_code == 2
    assert "standard input" in broken.stderr
    assert pml("submit", "-", stdin="tasks: []").exit_code == 4

from pathlib import Path

import orjson
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


def test_a_plan_that_is_none_is_its_files_mistake_and_not_one_of_usage(pml: Pml) -> None:
    """What it quotes of the file steers no terminal."""
    Path("plan.yaml").write_text('tasks: [{id: n1, tool: "a:b", "\\e]0;owned\\a": 1}]')
    told = pml("run", "replan", "run_1", "plan.yaml", "--json")
    assert (told.exit_code, orjson.loads(told.stdout)["error"]["code"]) == (3, "WORKFLOW_INVALID")
    assert told.stderr.startswith("pml: plan.yaml is no plan: tasks.0")
    assert "\x1b" not in told.stderr


def test_what_else_a_replan_is_told_wrongly_is_a_mistake_of_usage(pml: Pml) -> None:
    told = pml("run", "replan", "run_1", "-", "--checkpoint", "", "--json", stdin="tasks: []")
    assert (told.exit_code, orjson.loads(told.stdout)["error"]["code"]) == (2, "USAGE")
    assert "checkpoint_id" in told.stderr


@pytest.mark.parametrize(
    ("plan", "told", "exit_code"),
    [
        ("tasks: []\ntaskz: []", "plan.yaml is no plan: taskz", 3),
        ("tasks: []\nhold: true", "plan.yaml is no plan: hold", 3),
        ("taskz: []", "plan.yaml is no plan: taskz", 3),
        ("tasks: []\nresult: {type: literal, value: 1}", "leave out result", 2),
        (
            "name: other\nintent: x\nworkflow_type: y\noptions: {}",
            "leave out intent and options and workflow_type",
            2,
        ),
        ("tasks: []\nworkflowType: y", "leave out workflow_type", 2),
        ("tasks: 2026-13-45", "neither YAML nor JSON: it has a value that cannot be", 2),
    ],
)
def test_what_a_plan_says_is_not_passed_over(pml: Pml, plan: str, told: str, exit_code: int) -> None:
    """Nor is what it says of the run, which has its own."""
    Path("plan.yaml").write_text(plan)
    refused = pml("run", "replan", "run_1", "plan.yaml", "--json")
    assert (refused.exit_code, told in refused.stderr) == (exit_code, True), refused.stderr
    assert orjson.loads(refused.stdout)["error"]["message"]


def test_a_workflow_with_a_date_that_cannot_be_is_told(pml: Pml) -> None:
    refused = pml("submit", "-", "--json", stdin="tasks: 2026-13-45")
    assert (refused.exit_code, "has a value that cannot be" in refused.stderr) == (2, True), refused.stderr

"""The demo's material is the same each time, and its digest sees what changes."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from pml.deploy.examples import world
from pml.schemas.errors import ConfigurationError, PrerequisiteError
from tests.fixtures.patience import PATIENCE_S

CHECKOUT = Path(__file__).parents[2]


def git(repository: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    ).stdout.strip()


def test_two_builds_are_the_same_and_a_rebuild_removes_what_was_added(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    world.build(first)
    world.build(second)
    assert world.digest(first) == world.digest(second)
    before = world.digest(first)
    (first / "reports").mkdir()
    (first / "reports" / "new.md").touch()
    (first / "README.md").unlink()
    assert world.digest(first) != before
    world.build(first)
    assert world.digest(first) == before


def test_one_json_file_is_broken_and_the_others_are_not(tmp_path: Path) -> None:
    world.build(tmp_path)
    broken = []
    for path in tmp_path.rglob("*.json"):
        try:
            json.loads(path.read_text())
        except ValueError:
            broken.append(path.relative_to(tmp_path).as_posix())
    assert broken == ["config/legacy.json"]


def test_a_foreign_folder_is_not_emptied(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(ConfigurationError, match="no demo made"):
        world.build(tmp_path)
    with pytest.raises(ConfigurationError, match="no demo made"):
        world.clone(CHECKOUT, tmp_path)
    assert (tmp_path / "mine").read_text() == "kept"


@pytest.mark.parametrize("change", ["content", "name", "kind", "empty folder"])
def test_the_digest_sees_every_change(tmp_path: Path, change: str) -> None:
    world.build(tmp_path)
    before, file = world.digest(tmp_path), tmp_path / "LICENSE"
    match change:
        case "content":
            file.write_bytes(file.read_bytes()[:-1] + b"\t")
        case "name":
            file.rename(tmp_path / "LICENCE")
        case "kind":
            file.unlink()
            file.symlink_to("README.md")
        case _:
            (tmp_path / "empty").mkdir()
    assert world.digest(tmp_path) != before


def test_a_clone_has_the_history_of_its_checkout_and_is_rebuilt_the_same(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    world.clone(tmp_path / "nowhere", source)
    world.clone(source / "config", target)
    assert git(target, "rev-parse", "HEAD") == git(source, "rev-parse", "HEAD")
    assert git(target, "status", "--porcelain") == ""
    before = world.digest(target)
    (target / "README.md").write_text("changed")
    assert world.digest(target) != before
    git(target, "add", "README.md")
    shutil.copy(source / "README.md", target / "README.md")
    assert world.digest(target) != before, "what is staged counts too"
    world.clone(source, target)
    assert world.digest(target) == before
    of_source = world.digest(source)
    world.clone(source, target, linked=True)
    assert world.digest(target) == before
    git(target, "gc", "--quiet", "--prune=now")
    assert world.digest(source) == of_source


def test_reading_a_clone_does_not_change_its_digest(tmp_path: Path) -> None:
    world.clone(tmp_path, tmp_path / "target")
    before = world.digest(tmp_path / "target")
    (tmp_path / "target" / "README.md").touch()
    git(tmp_path / "target", "status")
    git(tmp_path / "target", "log")
    assert world.digest(tmp_path / "target") == before


def test_without_a_history_the_same_repository_is_made_each_time(tmp_path: Path) -> None:
    world.clone(tmp_path, tmp_path / "first")
    world.clone(tmp_path, tmp_path / "second")
    assert not world.has_history(tmp_path)
    assert world.has_history(tmp_path / "first")
    assert world.digest(tmp_path / "first") == world.digest(tmp_path / "second")
    assert int(git(tmp_path / "first", "rev-list", "--count", "HEAD")) > 10


def test_a_machine_without_git_is_told_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PrerequisiteError, match="install it"):
        world.clone(CHECKOUT, tmp_path / "target")

"""The mutation tester on a small module of its own: it kills what is tested, and reports what is not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fixtures.patience import PATIENCE_S
from tests.mutation.command import sampled
from tests.mutation.mutants import Module, Mutant
from tests.mutation.patching import exchange

TOLLS = '''
"""Tolls."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

__all__ = ["toll"]
BASE = 3
LIMIT: int = 10


@dataclass(frozen=True)
class Car:
    """Docstring."""

    axles: int = 2
    paid: bool = False

    @property
    def heavy(self) -> bool:
        """Docstring."""
        return self.axles > 2


@functools.cache
def toll(axles: int) -> int:
    """What to pay."""
    if axles < 0:
        raise ValueError(f"no such car: {axles}")
    return BASE + min(axles, LIMIT)


def pay(car: Car) -> Car:
    return replace(car, paid=True)


def by(step):
    return lambda number: number + step


ON = by(1)


def untested(word: str) -> bool:
    return word == "free"
'''
COUNTING = """
def count_to(wanted):
    count = 0
    while count < wanted:
        count += 1
    return count
"""
COUNTED = """
def test_{name}():
    assert (counting.{name}(0), counting.{name}(5)) == (0, 5)
"""
CHECKS = """
import pytest

from tolls.counting import count_to
from tolls.tolls import BASE, ON, Car, pay, toll


def test_tolls():
    assert (toll(0), toll(2), toll(50)) == (3, 5, 13)
    assert (BASE, ON(4)) == (3, 5)


def test_no_such_car():
    with pytest.raises(ValueError, match="no such car"):
        toll(-1)


def test_pay():
    assert pay(Car()) == Car(2, True)
    assert Car().axles == 2


def test_counting():
    assert (count_to(0), count_to(5)) == (0, 5)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a package and its tests."""
    (tmp_path / "tolls").mkdir()
    (tmp_path / "tolls/__init__.py").touch()
    (tmp_path / "tolls/tolls.py").write_text(TOLLS.strip() + "\n")
    (tmp_path / "tolls/counting.py").write_text(COUNTING)
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks/test_tolls.py").write_text(CHECKS)
    return tmp_path


def hunt(place: Path, *words: str) -> tuple[int, Any]:
    """The command's exit code and what it says."""
    options = ["--sources", "tolls", "--tests", "checks", "--survivors", "survivors.yaml", "--json", *words]
    paths = os.pathsep.join([str(Path.cwd()), str(place), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutation", *options],
        cwd=place,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode in {0, 1}, done.stderr
    return done.returncode, json.loads(done.stdout)


def fates(told: Any) -> dict[str, str]:
    """The fate of each mutant, by what it changes."""
    return {item["mutant"].split(" ⇒ ")[1]: item["fate"] for item in told["verdicts"]}


def test_what_is_tested_is_killed_and_what_is_not_lives(place: Path) -> None:
    code, told = hunt(place, "--module", "tolls.py", "--jobs", "2")
    found = fates(told)
    assert found["axles < 0 → axles <= 0"] == "killed"
    assert found["min(axles, LIMIT) → max(axles, LIMIT)"] == "killed"
    assert found["BASE + min(axles, LIMIT) → BASE - min(axles, LIMIT)"] == "killed"
    assert found["replace(car, paid=True) → replace(car)"] == "killed"
    assert found["number + step → number - step"] == "killed", "the lambda was made on import"
    assert found["raise ValueError(f'no such car: {axles}') → pass"] == "killed"
    assert found["self.axles > 2 → self.axles >= 2"] == "not reached"
    assert found["word == 'free' → word != 'free'"] == "not reached"
    assert code == 1, "too few are killed"
    # What runs on import.
    assert found["3 → 4"] == found["10 → 11"] == "killed"
    twos = sorted(item["fate"] for item in told["verdicts"] if item["mutant"].endswith(" ⇒ 2 → 3"))
    assert twos == ["killed", "not reached"], "the default of a field, and a limit that no test looks at"
    assert found["False → True"] == "survived"


def test_a_mutant_without_end_is_killed_by_time(place: Path) -> None:
    code, told = hunt(place, "--module", "counting", "--jobs", "2")
    assert fates(told)["count += 1 → pass"] == "timed out"
    assert (code, told["share"]) == (0, 1.0)


def test_a_sample_says_how_sure_it_is(place: Path) -> None:
    _, told = hunt(place, "--module", "tolls.py", "--sample", "5")
    low, high = told["interval"]
    assert told["tried"] == 5
    assert 0 <= low < high <= 1
    assert low <= told["share"] <= high
    again = sampled([Module(place / "tolls/tolls.py", "tolls.py")], 5, 1)
    assert {mutant.name for _, mutant in again} == {item["mutant"] for item in told["verdicts"]}


def test_the_list_of_survivors_must_be_true(place: Path) -> None:
    alive = [mutant.name for mutant in mutants(place) if mutant.function == "untested"]
    listed(place, alive)
    code, told = hunt(place, "--module", "tolls.py", "--floor", "0.4")
    assert (code, told["gone"], told["noticed"]) == (0, [], [])
    assert sum(item["reason"] == "nobody tests it" for item in told["verdicts"]) == len(alive)

    killed = next(mutant.name for mutant in mutants(place) if mutant.was == "axles < 0")
    listed(place, [*alive, killed, "tolls.py toll: never ⇒ was → there"])
    code, told = hunt(place, "--module", "tolls.py", "--floor", "0.4")
    assert code == 1
    assert (told["noticed"], told["gone"]) == ([killed], ["tolls.py toll: never ⇒ was → there"])


def listed(place: Path, names: list[str]) -> None:
    """Write the list of survivors."""
    (place / "survivors.yaml").write_text(yaml.safe_dump([{"reason": "nobody tests it", "mutants": names}]))


def test_what_no_test_should_notice_is_no_mutant(place: Path) -> None:
    shown = {mutant.source for mutant in Module(place / "tolls/tolls.py", "tolls.py").mutants}
    assert not shown & {'"""Tolls."""', '__all__ = ["toll"]', "@dataclass(frozen=True)", "@functools.cache"}
    assert not any(mutant.was.startswith("f'no such") for mutant in mutants(place))


def test_a_function_takes_the_code_of_its_mutant(place: Path) -> None:
    (place / "free.py").write_text("def free(word):\n    return word == 'free'\n")
    module = Module(place / "free.py", "free.py")
    space: dict[str, Any] = {}
    exec(compile(module.path.read_text(), str(module.path), "exec"), space)
    mutant = next(item for item in module.mutants if item.was == "word == 'free'")
    assert space["free"]("free")
    exchange([space["free"]], module.code(mutant, str(module.path)))
    assert not space["free"]("free")


def mutants(place: Path) -> list[Mutant]:
    """Those of the module."""
    return Module(place / "tolls/tolls.py", "tolls.py").mutants


def test_a_hunt_that_is_interrupted_tells_what_it_found(place: Path) -> None:
    """The hanging mutants of four functions take seconds each, so the signal comes before the last."""
    names = ["count_to", "count_up", "count_on", "count"]
    module, checks = place / "tolls/counting.py", place / "checks/test_tolls.py"
    module.write_text("".join(COUNTING.replace("count_to", name) for name in names))
    checks.write_text(
        "from tolls import counting\n\n\n" + "".join(COUNTED.format(name=name) for name in names)
    )
    paths = os.pathsep.join([str(Path.cwd()), str(place), os.environ.get("PYTHONPATH", "")])
    options = ["--sources", "tolls", "--tests", "checks", "--survivors", "none.yaml", "--module", "counting"]
    running = subprocess.Popen(
        [sys.executable, "-m", "tests.mutation", *options, "--json"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    before = wait_for_children(running.pid)
    running.send_signal(signal.SIGINT)
    told = json.loads(running.communicate(timeout=PATIENCE_S)[0])
    assert 0 <= told["tried"] < 4 * 8
    assert told["interval"][0] < told["interval"][1], "it is an estimate now"
    assert not any(Path(f"/proc/{pid}").exists() for pid in before)


def wait_for_children(pid: int) -> list[str]:
    """The mutants that live now, once one of them has computed for a second."""
    while True:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        with suppress(FileNotFoundError):
            if any(int(Path(f"/proc/{child}/stat").read_text().split()[13]) > 100 for child in found):
                return found
        time.sleep(0.05)

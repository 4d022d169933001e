"""Which recorded workflows are played, and how long their tools and the decisions about them take."""

from __future__ import annotations

import gzip
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from benchmarks.datasets import VARIABLE, datasets_place
from benchmarks.speculation.conversion import SourceWorkflow, convert
from pml.schemas.errors import ConfigurationError

DATASETS = ("n8n", "galaxy_iwc", "nestful", "toollinkos", "api_bank")
# Of the tools' latencies: the logarithm's standard deviation.
SIGMA = 0.8
DECISION_S = (1.0, 3.0)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A workflow and its times in a round: of tools, of a decision after each layer and before each call."""

    source: SourceWorkflow
    seed: int
    tools_s: tuple[float, ...]
    decisions_s: tuple[float, ...]
    thoughts_s: tuple[float, ...]


def datasets_folder() -> Path:
    """Where the data sets are.

    Raises:
        ConfigurationError: no folder that holds them is named, nor beside the checkout.
    """
    folder = datasets_place()
    missing = [name for name in DATASETS if folder is None or not (folder / name / "tools.jsonl").is_file()]
    if folder is None or missing:
        raise ConfigurationError(f"set {VARIABLE} to the folder with the data sets {', '.join(missing)}")
    return folder


def read_workflows(folder: Path, dataset: str) -> list[SourceWorkflow]:
    """All workflows of a data set."""
    read_only = {tool["tool_id"]: tool["read_only"] for tool in _lines(folder / dataset / "tools.jsonl")}
    packed = folder / dataset / "workflows.dev.jsonl.gz"
    records = packed if packed.exists() else packed.with_suffix("")
    return [convert(dataset, record, read_only) for record in _lines(records) if record["tasks"]]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many workflows of each data set, and how large they may be."""

    count: int
    layers_max: int
    tasks_max: int


def sample(workflows: list[SourceWorkflow], sizes: Sizes, seed: int) -> list[SourceWorkflow]:
    """Some of those that have at least two layers and are not too long for a measurement."""
    fitting = [w for w in workflows if 2 <= w.layers <= sizes.layers_max and len(w.tasks) <= sizes.tasks_max]
    return random.Random(seed).sample(fitting, min(sizes.count, len(fitting)))


def draw(source: SourceWorkflow, median_s: float, seed: int) -> Drawn:
    """The times of a workflow in a round: the same for every side of it."""
    drawn = random.Random(f"{seed}/{source.dataset}/{source.id}")
    return Drawn(
        source,
        seed,
        tuple(drawn.lognormvariate(math.log(median_s), SIGMA) for _ in source.tasks),
        tuple(drawn.uniform(*DECISION_S) for _ in range(source.layers - 1)),
        tuple(drawn.uniform(*DECISION_S) for _ in source.tasks),
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        for line in file:
            yield orjson.loads(line)

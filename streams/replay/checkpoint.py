"""How far a replay came: a line for each partition that is done, so that it can be resumed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from pml.schemas.errors import ConfigurationError
from pml.streams.replay.play import ReplayReport
from pml.streams.replay.report import Comparison, Difference
from pml.streams.replay.selection import Selection
from pml.streams.settings import Settings

FOLDER = "replay"
FORMAT = 1


class Checkpoint:
    """A file of lines, one a partition that was read, folded and compared; it is removed at the end.

    Args:
        file: where; nothing needs to be there.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    @classmethod
    def of(cls, settings: Settings, selection: Selection) -> Checkpoint:
        """That of this selection of these topics or this database."""
        kafka, store = settings.kafka, settings.clickhouse
        what = [FORMAT, asdict(selection), kafka.topic_prefix, kafka.bootstrap_servers, store.database]
        name = hashlib.blake2b(orjson.dumps(what), digest_size=8).hexdigest()
        return cls(settings.make_data_dir() / FOLDER / f"{name}.jsonl")

    def begin(self) -> None:
        """Nothing is done yet, whatever was.

        Raises:
            ConfigurationError: the file cannot be written.
        """
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.file.write_bytes(b"")
        except OSError as error:
            raise ConfigurationError(f"{self.file} cannot be written: {error.strerror}") from None

    def add(self, partition: int, report: ReplayReport) -> None:
        """A partition is done."""
        line = {"partition": partition, **asdict(report)}
        with self.file.open("ab") as file:
            # A line break before it as well: the line before may have been cut off.
            file.write(b"\n" + orjson.dumps(line, option=orjson.OPT_NON_STR_KEYS) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def done(self) -> dict[int, ReplayReport]:
        """The partitions that were done; none where there is no file. A line that was cut off is none."""
        try:
            lines = self.file.read_bytes().split(b"\n")
        except FileNotFoundError:
            return {}
        told = [line for line in map(_object, lines) if line is not None]
        return {line.pop("partition"): _report(line) for line in told}

    def remove(self) -> None:
        """It came to its end."""
        self.file.unlink(missing_ok=True)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return found


def _report(told: Mapping[str, Any]) -> ReplayReport:
    offsets = {int(partition): span for partition, span in told["offsets"].items()}
    comparisons = [_comparison(each) for each in told["comparisons"]]
    return ReplayReport(told["events"], offsets, comparisons)


def _comparison(told: Mapping[str, Any]) -> Comparison:
    first = told["first"]
    return Comparison(**{**told, "first": None if first is None else Difference(**first)})

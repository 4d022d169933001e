"""How far a replay came: a line for each partition that is done, so that it can be resumed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from pml.clickhouse.address import Address
from pml.schemas.errors import ConfigurationError
from pml.streams.replay.play import ReplayReport
from pml.streams.replay.report import Comparison, Difference
from pml.streams.replay.selection import CLICKHOUSE, Selection
from pml.streams.settings import Settings

FOLDER = "replay"
FORMAT = 1


class Checkpoint:
    """A file of lines, one a partition that was read, folded and compared; it is removed at the end.

    It is of use to who resumes, and to nobody else: where it cannot be written any more, the replay goes on.

    Args:
        file: where; nothing needs to be there.
        tell: is told, once, that it cannot be written any more.

    Attributes:
        kept: how many partitions it has.
    """

    def __init__(self, file: Path, tell: Callable[[str], None] = lambda _: None) -> None:
        self.file, self.kept = file, 0
        self._tell, self._fails = tell, False

    @classmethod
    def of(
        cls, settings: Settings, selection: Selection, tell: Callable[[str], None] = lambda _: None
    ) -> Checkpoint:
        """That of this selection of these topics and this database.

        Raises:
            ConfigurationError: the URL of the store that it needs is none.
        """
        kafka = settings.kafka
        what = [FORMAT, asdict(selection), kafka.topic_prefix, kafka.bootstrap_servers]
        what += _store(settings, selection)
        name = hashlib.blake2b(orjson.dumps(what), digest_size=8).hexdigest()
        return cls(settings.data_dir / FOLDER / f"{name}.jsonl", tell)

    def begin(self) -> None:
        """Nothing is done yet, whatever was. Folders that are made are their owner's alone.

        Raises:
            ConfigurationError: the file cannot be written.
        """
        try:
            for folder in (self.file.parent.parent, self.file.parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.file.write_bytes(b"")
        except OSError as error:
            raise ConfigurationError(
                f"{self.file} cannot be written ({error.strerror or error}), from which --resume goes on: "
                "let whoever runs PML write into data_dir"
            ) from None
        self.kept = 0

    def add(self, partition: int, report: ReplayReport) -> None:
        """A partition is done. The first that cannot be written is the last that is tried."""
        if self._fails:
            return
        line = {"partition": partition, **asdict(report)}
        try:
            self._append(orjson.dumps(line, option=orjson.OPT_NON_STR_KEYS))
        except OSError as error:
            self._fails = True
            self._tell(
                f"{self.file} cannot be written any more ({error.strerror or error}): what is done from "
                "here on, --resume does again"
            )
        else:
            self.kept += 1

    def done(self) -> dict[int, ReplayReport]:
        """The partitions that were done; none where there is no file.

        A line that was cut off, or that another release wrote, is none.

        Raises:
            ConfigurationError: the file cannot be read.
        """
        try:
            lines = self.file.read_bytes().split(b"\n")
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigurationError(
                f"{self.file} cannot be read ({error.strerror or error}): leave --resume out, or remove it"
            ) from None
        found = dict(each for each in map(_done, lines) if each is not None)
        self.kept = len(found)
        return found

    def remove(self) -> None:
        """It came to its end."""
        try:
            self.file.unlink(missing_ok=True)
        except OSError as error:
            self._tell(
                f"{self.file} cannot be removed ({error.strerror or error}): do, before the next --resume"
            )

    def _append(self, line: bytes) -> None:
        """
        Raises:
            OSError
        """
        with self.file.open("ab") as file:
            # A line break before it as well: the line before may have been cut off.
            file.write(b"\n" + line + b"\n")
            file.flush()
            os.fsync(file.fileno())


def _store(settings: Settings, selection: Selection) -> list[str]:
    """Which store is asked, without its password: what was found in one is not said of another.

    That of the local stack has no name of its own: it belongs to the data folder, and so does the checkpoint.
    """
    database, url = settings.clickhouse.database, settings.clickhouse.url
    if url is None or not (selection.verify or selection.source == CLICKHOUSE):
        return [database]
    address = Address.parse(url.get_secret_value(), database)
    return [address.database, address.base_url, address.user]


def _done(line: bytes) -> tuple[int, ReplayReport] | None:
    """A partition and its report; None where a line is none."""
    try:
        told = orjson.loads(line)
        return int(told["partition"]), _report(told)
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def _report(told: Mapping[str, Any]) -> ReplayReport:
    offsets = {int(partition): span for partition, span in told["offsets"].items()}
    comparisons = [_comparison(each) for each in told["comparisons"]]
    return ReplayReport(told["events"], offsets, comparisons)


def _comparison(told: Mapping[str, Any]) -> Comparison:
    first = told["first"]
    return Comparison(**{**told, "first": None if first is None else Difference(**first)})

"""The folder of an embedded broker: its settings, its ports, its lock, its logs and its data."""

from __future__ import annotations

import base64
import fcntl
import os
import secrets
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path

import orjson

from pml.streams.local.ports import HOST

SETTINGS, CONSOLE, SERVER_LOG = "server.properties", "console.log", "server.log"
TAIL_BYTES = 65_536
# A broker that is silent for longer loses all its partitions until it is heard again. On a machine that has
# too much to do, Java gets nothing to run on for seconds.
SESSION_TIMEOUT_MS = 9_000
# After a kill, the new one has to wait until the old one counts as gone.
SESSION_TIMEOUT_AFTER_KILL_MS = 4_000
HEARTBEATS_PER_SESSION = 4


@dataclass(frozen=True)
class BrokerRecord:
    """What is kept for the next start: the chosen ports, and who last ran here."""

    port: int
    controller_port: int
    pid: int | None = None


class KafkaFolder:
    """Everything is written with paths relative to the folder, so that it may be moved and have any name."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def is_formatted(self) -> bool:
        return (self.path / "data" / "meta.properties").exists()

    def format(self) -> None:
        """Make the data folder of a new node, as `kafka-storage format` does; nothing if it is there.

        Kafka's own tool takes a second. What it writes is the same for each node of a version but for the
        names in meta.properties, so its `bootstrap.checkpoint` comes with PML.
        """
        if self.is_formatted:
            return
        data = self.path / "data"
        data.mkdir(exist_ok=True)
        checkpoint = resources.files("pml.deploy") / "kafka" / "bootstrap.checkpoint"
        (data / "bootstrap.checkpoint").write_bytes(checkpoint.read_bytes())
        names = f"cluster.id={new_id()}\ndirectory.id={new_id()}\n"
        # The file by which the folder is known as formatted comes last, and whole.
        written = data / "meta.properties.tmp"
        written.write_text(f"version=1\nnode.id=1\n{names}", encoding="ascii")
        written.rename(data / "meta.properties")

    @property
    def was_killed(self) -> bool:
        """Whether the last broker here ended without having stopped."""
        return self.is_formatted and not (self.path / "data" / ".kafka_cleanshutdown").exists()

    def lock(self) -> int | None:
        """A descriptor that holds the folder, or None if another process holds it.

        The broker inherits it: the folder is held while either of us lives, and by no stale file after that.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def read_record(self) -> BrokerRecord | None:
        """The record of the last start; None if there was none, or if it was cut short."""
        try:
            return BrokerRecord(**orjson.loads((self.path / "broker.json").read_bytes()))
        except (FileNotFoundError, orjson.JSONDecodeError, TypeError):
            return None

    def write_record(self, record: BrokerRecord) -> None:
        (self.path / "broker.json").write_bytes(orjson.dumps(asdict(record)) + b"\n")

    def write_settings(self, port: int, controller_port: int) -> None:
        base = resources.files("pml.deploy") / "kafka"
        settings = (base / "server.properties").read_text(encoding="ascii") + addresses(port, controller_port)
        silent_ms = SESSION_TIMEOUT_AFTER_KILL_MS if self.was_killed else SESSION_TIMEOUT_MS
        settings += f"broker.session.timeout.ms={silent_ms}\n"
        settings += f"broker.heartbeat.interval.ms={silent_ms // HEARTBEATS_PER_SESSION}\n"
        (self.path / SETTINGS).write_text(settings, encoding="ascii")
        (self.path / "log4j2.yaml").write_bytes((base / "log4j2.yaml").read_bytes())

    def log_size_bytes(self) -> int:
        log = self.path / SERVER_LOG
        return log.stat().st_size if log.exists() else 0

    def last_lines(self, log_from_bytes: int, count: int = 12) -> list[str]:
        """The last lines of the broker's console and of its log since `log_from_bytes`."""
        rolled = self.log_size_bytes() < log_from_bytes
        console = _tail(self.path / CONSOLE, 0, count)
        return console + _tail(self.path / SERVER_LOG, 0 if rolled else log_from_bytes, count)


def addresses(port: int, controller_port: int) -> str:
    """The lines of server.properties that differ between two brokers on one machine."""
    return (
        f"\nlisteners=PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}\n"
        f"advertised.listeners=PLAINTEXT://{HOST}:{port}\n"
        f"controller.quorum.voters=1@{HOST}:{controller_port}\n"
    )


def new_id() -> str:
    """16 random bytes in URL-safe base64, as Kafka names clusters and folders."""
    while True:
        name = base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()
        if not name.startswith("-"):  # which Kafka's tools would take for an option
            return name


def _tail(path: Path, from_bytes: int, count: int) -> list[str]:
    if not path.exists():
        return []
    with path.open("rb") as stream:
        stream.seek(max(from_bytes, path.stat().st_size - TAIL_BYTES))
        return stream.read().decode(errors="replace").splitlines()[-count:]

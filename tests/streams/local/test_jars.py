from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path

import pytest
from rich.console import Console

from pml.schemas.errors import ConfigurationError, PrerequisiteError
from pml.streams.local import jars
from pml.streams.local.jars import Jar, fetch_with_jgo, kafka_jars, read_lock, resolve_jars

CONTENT = b"PK a jar"
JAR = Jar("org.example", "thing", "1.2", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))


class Remote:
    """Stands for the network: hands out `content`, after failing as often as `failures` says."""

    def __init__(self, content: bytes = CONTENT, failures: list[Exception] | None = None) -> None:
        self.content = content
        self.failures = failures or []
        self.calls = 0

    def __call__(self, jar: Jar, folder: Path) -> Path:
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        path = folder / "fetched.jar"
        path.write_bytes(self.content)
        return path


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=100)


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "RETRY_DELAY_S", 0)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_the_lock_names_every_jar_of_kafka_once_and_no_registry() -> None:
    text = (resources.files("pml.deploy") / "kafka" / "jars.lock").read_text()
    locked = kafka_jars()
    names = {f"{jar.group}:{jar.artifact}" for jar in locked}
    assert len(locked) == len(names) == 46
    assert {"org.apache.kafka:kafka_2.13", "org.apache.logging.log4j:log4j-slf4j-impl"} <= names
    assert all(len(bytes.fromhex(jar.sha256)) == 32 and jar.size_bytes > 0 for jar in locked)
    assert "://" not in text


@pytest.mark.parametrize("line", ["a:b:1", "a:b 00 1", "a:b:1 00 many", "a:b:1 00 1 more"])
def test_a_broken_line_of_the_lock_is_named(line: str) -> None:
    with pytest.raises(ConfigurationError, match=line):
        read_lock(f"# a comment\n\n{line}\n")


async def test_a_missing_jar_is_fetched_once_with_progress(tmp_path: Path, console: Console) -> None:
    remote = Remote()
    paths = await resolve_jars([JAR], tmp_path, console, remote)
    assert paths == [tmp_path / "org/example/thing/1.2/thing-1.2.jar"] == files_in(tmp_path)
    assert paths[0].read_bytes() == CONTENT
    assert "Fetching Apache Kafka" in shown(console)
    silent = Console(file=io.StringIO())
    assert await resolve_jars([JAR], tmp_path, silent, remote) == paths
    assert remote.calls == 1
    assert shown(silent) == ""


async def test_a_jar_whose_sum_differs_is_refused(tmp_path: Path, console: Console) -> None:
    remote = Remote()
    [path] = await resolve_jars([JAR], tmp_path, console, remote)
    path.write_bytes(CONTENT[:-1] + b"R")
    with pytest.raises(PrerequisiteError, match="delete that file and start again") as caught:
        await resolve_jars([JAR], tmp_path, console, remote)
    assert str(path) in caught.value.message
    assert remote.calls == 1


async def test_a_download_whose_sum_differs_is_refused_and_leaves_nothing(
    tmp_path: Path, console: Console
) -> None:
    with pytest.raises(PrerequisiteError, match=r"fetched as org\.example:thing:1\.2 is something else"):
        await resolve_jars([JAR], tmp_path, console, Remote(b"an error page"))
    assert files_in(tmp_path) == []


async def test_a_dropped_connection_is_tried_again(tmp_path: Path, console: Console) -> None:
    remote = Remote(failures=[ConnectionResetError("reset"), RuntimeError("503")])
    await resolve_jars([JAR], tmp_path, console, remote)
    assert remote.calls == 3


async def test_what_cannot_be_fetched_is_named_with_what_to_do(tmp_path: Path, console: Console) -> None:
    remote = Remote(failures=[OSError("no route to host\nand a trace")] * jars.ATTEMPTS)
    with pytest.raises(PrerequisiteError) as caught:
        await resolve_jars([JAR], tmp_path, console, remote)
    assert remote.calls == jars.ATTEMPTS
    message = caught.value.message
    assert "org.example:thing:1.2" in message
    assert "no route to host" in message
    assert "KAFKA_BOOTSTRAP_SERVERS" in message
    assert "\n" not in message


async def test_a_repository_that_cannot_be_written_is_named(tmp_path: Path, console: Console) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("not a folder")
    with pytest.raises(PrerequisiteError, match="M2_REPO"):
        await resolve_jars([JAR], occupied / "repository", console, Remote())


@pytest.fixture
def maven_repository(tmp_path: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    path = JAR.path_in(tmp_path / "remote")
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "remote"))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


async def test_jgo_fetches_a_jar_by_its_coordinate(
    tmp_path: Path, console: Console, maven_repository: str
) -> None:
    fetch = partial(fetch_with_jgo, remotes={"local": maven_repository})
    [path] = await resolve_jars([JAR], tmp_path / "repository", console, fetch)
    assert path.read_bytes() == CONTENT


async def test_jgo_says_when_a_jar_is_not_there(
    tmp_path: Path, console: Console, maven_repository: str
) -> None:
    fetch = partial(fetch_with_jgo, remotes={"local": maven_repository})
    unknown = Jar("org.example", "other", "1", JAR.sha256, 1)
    with pytest.raises(PrerequisiteError, match=r"org\.example:other:1"):
        await resolve_jars([unknown], tmp_path / "repository", console, fetch)

"""The broker's jars: pinned with their sums in deploy/kafka/jars.lock, fetched once into ~/.m2/repository."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from pml.schemas.errors import ConfigurationError, PrerequisiteError

ATTEMPTS = 3
RETRY_DELAY_S = 1.0  # a dropped connection or a busy mirror is usually back by then; doubled each time
READ_TIMEOUT_S = 30  # between two pieces of a jar, not for the whole; a stalled proxy is given up after it


@dataclass(frozen=True)
class Jar:
    """One line of the lock: Maven coordinate, sha256 in hex, size in bytes."""

    group: str
    artifact: str
    version: str
    sha256: str
    size_bytes: int

    @property
    def coordinate(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    def path_in(self, repository: Path) -> Path:
        """Where Maven's repository layout puts this jar."""
        folder = repository.joinpath(*self.group.split("."), self.artifact, self.version)
        return folder / f"{self.artifact}-{self.version}.jar"


Fetch = Callable[[Jar, Path], Path]


def read_lock(text: str) -> list[Jar]:
    """The jars that a lock file names, in its order.

    Raises:
        ConfigurationError: a line is not `group:artifact:version sha256 bytes`.
    """
    lines = (line.strip() for line in text.splitlines())
    return [_read_line(line) for line in lines if line and not line.startswith("#")]


def _read_line(line: str) -> Jar:
    try:
        coordinate, sha256, size_bytes = line.split()
        group, artifact, version = coordinate.split(":")
        return Jar(group, artifact, version, sha256, int(size_bytes))
    except ValueError:
        raise ConfigurationError(
            f"jars.lock: “{line}” is not “group:artifact:version sha256 bytes”; restore the file from git."
        ) from None


def kafka_jars() -> list[Jar]:
    """The jars of the embedded broker."""
    lock = resources.files("pml.deploy") / "kafka" / "jars.lock"
    return read_lock(lock.read_text(encoding="utf-8"))


def local_repository() -> Path:
    """Maven's local repository: `M2_REPO`, else `~/.m2/repository`."""
    return Path(os.environ.get("M2_REPO") or Path.home() / ".m2" / "repository")


async def resolve_jars(
    jars: Iterable[Jar], repository: Path, console: Console | None = None, fetch: Fetch | None = None
) -> list[Path]:
    """Paths of all jars, each with the sum that the lock names; missing ones are fetched first.

    Progress shows on `console` (standard error unless given) while something is being fetched.

    Raises:
        PrerequisiteError: a jar cannot be fetched or written, or is not the one that the lock names.
    """
    paths = {jar: jar.path_in(repository) for jar in jars}
    present = {jar: path for jar, path in paths.items() if path.exists()}
    await asyncio.to_thread(_verify_present, present)
    missing = [jar for jar in paths if jar not in present]
    if missing:
        await _fetch_all(missing, repository, fetch or fetch_with_jgo, console or Console(stderr=True))
    return list(paths.values())


def _verify_present(present: dict[Jar, Path]) -> None:
    # 44 MB take 20 to 50 ms: less than a cache of sums would be worth.
    for jar, path in present.items():
        found = _sha256(path)
        if found != jar.sha256:
            raise PrerequisiteError(
                f"{path} is not the {jar.coordinate} that jars.lock names (sha256 {found} instead of "
                f"{jar.sha256}): delete that file and start again, it will be fetched anew.",
                path=str(path),
            )


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


async def _fetch_all(missing: list[Jar], repository: Path, fetch: Fetch, console: Console) -> None:
    # One after another: 4 s in all. In parallel the lookups of one name at once made a small resolver lose
    # packets, and each of those costs 5 s.
    columns = (TextColumn("Fetching Apache Kafka"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("jars", total=sum(jar.size_bytes for jar in missing))
        for jar in missing:
            await _fetch_one(jar, repository, fetch)
            progress.advance(bar, jar.size_bytes)


async def _fetch_one(jar: Jar, repository: Path, fetch: Fetch) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return await asyncio.to_thread(_install, jar, repository, fetch)
        except PermissionError as error:
            raise _unwritable(repository, error) from error
        except (OSError, RuntimeError) as error:  # requests' errors are OSErrors, jgo's are RuntimeErrors
            if attempt == ATTEMPTS:
                raise _unfetchable(jar, error) from error
        await asyncio.sleep(RETRY_DELAY_S * 2 ** (attempt - 1))
    return None


def _install(jar: Jar, repository: Path, fetch: Fetch) -> None:
    """Fetches aside and moves a verified jar in: nobody ever meets half a jar or a wrong one."""
    with _scratch(repository) as folder:
        fetched = fetch(jar, Path(folder))
        found = _sha256(fetched)
        if found != jar.sha256:
            raise PrerequisiteError(
                f"What was fetched as {jar.coordinate} is something else (sha256 {found} instead of "
                f"{jar.sha256}) and was thrown away: find out which proxy or mirror "
                "changes it, or use another network.",
                coordinate=jar.coordinate,
            )
        path = jar.path_in(repository)
        path.parent.mkdir(parents=True, exist_ok=True)
        fetched.replace(path)


def _scratch(repository: Path) -> tempfile.TemporaryDirectory[str]:
    try:
        repository.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(prefix=".pml-", dir=repository)
    except OSError as error:
        raise _unwritable(repository, error) from error


def fetch_with_jgo(jar: Jar, repository: Path, remotes: dict[str, str] | None = None) -> Path:
    """Fetches one jar, without its dependencies, into an empty repository folder.

    Args:
        remotes: repositories by name; Maven Central unless given.
    """
    from jgo.maven import MavenContext  # 0.2 s, needed only when a jar is missing

    context = MavenContext(repo_cache=repository, remote_repos=remotes, timeout=READ_TIMEOUT_S)
    path: Path = context.project(jar.group, jar.artifact).at_version(jar.version).artifact().resolve()
    return path


def _unwritable(repository: Path, error: Exception) -> PrerequisiteError:
    return PrerequisiteError(
        f"The embedded Kafka keeps its jars in {repository}, which cannot be written ({_first_line(error)}): "
        "make it writable, or set M2_REPO to a folder that is."
    )


def _unfetchable(jar: Jar, error: Exception) -> PrerequisiteError:
    return PrerequisiteError(
        f"The embedded Kafka needs {jar.coordinate} from Maven Central, which could not be fetched "
        f"({_first_line(error)}): check the network (HTTPS_PROXY) and start again, or copy ~/.m2/repository "
        "from a machine that has it, or name a broker that exists in KAFKA_BOOTSTRAP_SERVERS.",
        coordinate=jar.coordinate,
    )


def _first_line(error: Exception) -> str:
    text = str(error).partition("\n")[0] or "no reason given"
    return f"{type(error).__name__}: {text[:200]}"

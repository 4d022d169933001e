import asyncio
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from pml.schemas.errors import PMLError
from pml.streams.local import supervisor
from pml.streams.local.services import Worker
from pml.streams.local.stack import Part, read_stack
from pml.streams.local.supervisor import AlreadyUp, Supervisor, hold_folder
from pml.streams.settings import Settings
from tests.fixtures.patience import PATIENCE_S

OWN_PID = psutil.Process().pid


class Substitute:
    """A worker whose starts go as `script` says, one word each: it `runs`, it `ends` at once, it `fails`."""

    def __init__(self, name: str, journal: list[str], *script: str) -> None:
        self.name, self.log = name, Path(f"{name}.log")
        self.journal, self.script = journal, list(script)
        self.pid: int | None = None
        self.goes = "runs"
        self.told_to_stop = asyncio.Event()

    async def start(self) -> None:
        self.journal.append(f"start {self.name}")
        self.told_to_stop.clear()
        self.goes = self.script.pop(0) if self.script else "runs"
        if self.goes == "fails":
            raise PMLError(f"{self.name} will not start")
        self.pid = OWN_PID

    async def wait(self) -> int:
        if self.goes == "runs":
            await self.told_to_stop.wait()
        return 3

    async def stop(self) -> None:
        self.journal.append(f"stop {self.name}")
        self.told_to_stop.set()
        self.pid = None

    def last_error(self) -> str | None:
        return None


Up = Callable[..., Supervisor]


@pytest.fixture
def parts() -> list[Part]:
    """Every change of state, as it was reported."""
    return []


@pytest.fixture
def stack_of(tmp_path: Path, parts: list[Part], monkeypatch: pytest.MonkeyPatch) -> Up:
    """Makes a supervisor of these workers; broker and store are somebody else's, and as they must be."""

    async def ensured(settings: Settings) -> None:
        return None

    def make(*workers: Substitute) -> Supervisor:
        waiting = list(workers)
        monkeypatch.setattr(supervisor, "ensure_topics", ensured)
        monkeypatch.setattr(supervisor, "migrate_store", lambda settings: None)
        monkeypatch.setattr(supervisor, "BACKOFF_FIRST_S", 0.001)
        monkeypatch.setattr(supervisor, "WORKERS", [(worker.name,) for worker in workers])
        monkeypatch.setattr(supervisor, "Worker", lambda settings, roles, template: waiting.pop(0))
        monkeypatch.setattr(supervisor, "forks_here", lambda: False)
        elsewhere = {"kafka": {"bootstrap_servers": "b:1"}, "clickhouse": {"url": "http://c:1"}}
        servers = tmp_path / "mcp-servers.yaml"
        return Supervisor(Settings.load(data_dir=tmp_path, mcp_servers=servers, **elsewhere), parts.append)

    return make


async def run_until(stack: Supervisor, condition: Callable[[], object]) -> None:
    stop = asyncio.Event()
    running = asyncio.create_task(stack.run(stop))
    async with asyncio.timeout(PATIENCE_S):
        while not running.done() and not condition():
            await asyncio.sleep(0.005)
    stop.set()
    await running


async def test_the_stack_file_tells_what_runs_while_it_runs(stack_of: Up, tmp_path: Path) -> None:
    stack = stack_of(Substitute("one", []))
    found = []
    await run_until(stack, lambda: stack.stack.ready and (found.append(read_stack(tmp_path)) or True))
    assert found[0] is not None
    assert (found[0].broker, found[0].broker_embedded, found[0].running) == ("b:1", False, True)
    assert [(part.name, part.state) for part in found[0].parts] == [("one", "ready")]
    assert found[0].parts[0].process is not None
    assert found[0].parts[0].process.pid == OWN_PID
    assert read_stack(tmp_path) is None


async def test_readers_stop_after_those_whose_events_they_read(stack_of: Up) -> None:
    journal: list[str] = []
    stack = stack_of(*(Substitute(name, journal) for name in ("decider", "caller", "reader")))
    await run_until(stack, lambda: stack.stack.ready)
    assert sorted(journal[3:5]) == ["stop caller", "stop decider"]
    assert journal[5] == "stop reader"


async def test_what_dies_is_started_again_and_says_so(stack_of: Up, parts: list[Part]) -> None:
    journal: list[str] = []
    stack = stack_of(Substitute("one", journal, "ends", "ends", "ends"))
    await run_until(stack, lambda: journal.count("start one") == 4)
    restarts = [part for part in parts if part.state == "restarting"]
    assert [part.restarts for part in restarts] == [1, 2, 3]
    assert restarts[0].last_error == "ended with code 3"


async def test_what_does_not_come_back_is_tried_again(stack_of: Up, parts: list[Part]) -> None:
    journal: list[str] = []
    stack = stack_of(Substitute("one", journal, "ends", "fails", "fails"))
    await run_until(stack, lambda: journal.count("start one") == 4)
    assert [part.state for part in parts].count("failed") == 2
    assert parts[-1].last_error == "ended with code 3"


async def test_a_part_that_does_not_come_up_takes_the_stack_down_and_says_why(
    stack_of: Up, tmp_path: Path
) -> None:
    journal: list[str] = []
    stack = stack_of(Substitute("one", journal), Substitute("two", journal, "fails"))
    with pytest.raises(PMLError, match="two will not start"):
        await run_until(stack, lambda: False)
    assert journal.count("stop one") == 1
    left = read_stack(tmp_path)
    assert left is not None
    assert left.error is not None
    assert left.error["message"] == "two will not start"
    with hold_folder(Settings.load(data_dir=tmp_path)):
        pass


async def test_other_servers_in_their_file_start_the_bridge_again(
    stack_of: Up, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "SERVERS_S", 0.01)
    journal: list[str] = []
    stack = stack_of(Substitute("orchestrator", journal), Substitute("bridge", journal))
    servers = stack.settings.mcp_servers

    def write(text: str) -> None:
        if stack.stack.ready and (not servers.exists() or servers.read_text() != text):
            servers.write_text(text)

    await run_until(
        stack, lambda: write("mcpServers: {a: {command: b}}") or journal.count("start bridge") == 2
    )
    assert journal.count("start orchestrator") == 1


async def test_servers_that_are_named_while_the_bridge_starts_start_it_again(
    stack_of: Up, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has read the file by then."""
    monkeypatch.setattr(supervisor, "SERVERS_S", 0.01)
    journal: list[str] = []

    class Slow(Substitute):
        async def start(self) -> None:
            await super().start()
            stack.settings.mcp_servers.write_text("mcpServers: {a: {command: b}}")

    stack = stack_of(Slow("bridge", journal))
    await run_until(stack, lambda: journal.count("start bridge") == 2)
    assert journal.count("start bridge") == 2


async def test_a_folder_has_one_supervisor(stack_of: Up, tmp_path: Path) -> None:
    with hold_folder(Settings.load(data_dir=tmp_path)), pytest.raises(AlreadyUp, match="pml status"):
        await stack_of(Substitute("one", [])).run(asyncio.Event())


def test_a_folder_that_cannot_be_written_is_a_wrong_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(PMLError, match="cannot be used"),
        hold_folder(Settings.load(data_dir=tmp_path / "file")),
    ):
        pass


def test_the_roles_of_the_stack_are_all_there_are() -> None:
    from pml.streams.worker import ROLES, load_role

    assert {role for roles in supervisor.WORKERS for role in roles} == set(ROLES)
    assert {load_role(role).name for role in ROLES} == set(ROLES)  # type: ignore[attr-defined]
    assert Worker(Settings.load(), ("metrics", "sink")).name == "metrics+sink"

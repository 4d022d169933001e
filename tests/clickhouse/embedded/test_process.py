from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from pml.clickhouse.client import Store, probe
from pml.schemas.errors import StoreUnavailable
from tests.fixtures.store import STOP_TIMEOUT_S, start_embedded

pytestmark = pytest.mark.integration

RUN = [sys.executable, "-m", "pml.clickhouse.embedded"]


def _fill(url: str) -> None:
    with Store.connect(url, "default") as store:
        store.command("CREATE TABLE kept (a UInt64) ENGINE = MergeTree ORDER BY a")
        store.insert("kept", ["a"], [[number] for number in range(1000)])


def _count(url: str) -> int:
    with Store.connect(url, "default") as store:
        return int(store.query("SELECT count() FROM kept").rows[0][0])


def test_data_survive_a_stop_and_a_kill(tmp_path: Path) -> None:
    server = start_embedded(tmp_path)
    _fill(server.url)
    assert server.stop() == 0
    server = start_embedded(tmp_path)
    assert _count(server.url) == 1000
    with Store.connect(server.url, "default") as store:
        store.insert("kept", ["a"], [[1]])
    server.kill()
    (tmp_path / "clickhouse" / "incoming" / "left-behind").write_bytes(b"x")
    server = start_embedded(tmp_path)
    assert _count(server.url) == 1001
    assert list((tmp_path / "clickhouse" / "incoming").iterdir()) == []
    server.stop()


def test_the_password_stays_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    first = start_embedded(tmp_path)
    first.stop()
    second = start_embedded(tmp_path)
    password = (tmp_path / "clickhouse" / "password").read_text()
    assert len(password) >= 32
    assert f":{password}@127.0.0.1:" in first.url
    assert f":{password}@127.0.0.1:" in second.url
    modes = [
        stat.S_IMODE(file.stat().st_mode)
        for file in [tmp_path / "clickhouse" / "password", *tmp_path.glob("*.json")]
    ]
    assert set(modes) == {0o600}
    second.stop()


def test_it_listens_on_loopback_only(tmp_path: Path) -> None:
    server = start_embedded(tmp_path)
    listening = [
        c.laddr.ip for c in psutil.Process(server.process.pid).net_connections() if c.status == "LISTEN"
    ]
    assert listening == ["127.0.0.1"]
    server.stop()


def test_two_on_one_folder_and_on_one_port_are_refused_with_a_sentence(tmp_path: Path) -> None:
    server = start_embedded(tmp_path)
    port = server.url.rpartition(":")[2]
    for folder, taken, told in (
        (tmp_path, "0", "is another PML running on it"),
        (tmp_path / "b", port, "cannot be used"),
    ):
        second = subprocess.run(
            [*RUN, "--data-dir", str(folder), "--port", taken],
            capture_output=True,
            text=True,
            timeout=STOP_TIMEOUT_S,
            check=False,
        )
        assert second.returncode == 1
        assert told in second.stderr
        assert "Traceback" not in second.stderr
    assert probe(server.url).embedded
    server.stop()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_it_ends_with_its_parent_however_that_ends(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from tests.fixtures.store import start_embedded;"
        "server = start_embedded(Path(sys.argv[1])); print(server.process.pid, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    parent.stdout.close()
    parent.kill()
    parent.wait(STOP_TIMEOUT_S)
    gone, alive = psutil.wait_procs([child], timeout=STOP_TIMEOUT_S)
    assert (len(gone), alive) == (1, [])


def test_a_stop_lets_a_running_query_go(tmp_path: Path) -> None:
    server = start_embedded(tmp_path)
    with Store.connect(server.url, "default") as store:
        store.query("SELECT 1")
        started = time.monotonic()
        os.kill(server.process.pid, signal.SIGTERM)
        assert server.process.wait(STOP_TIMEOUT_S) == 0
        assert time.monotonic() - started < STOP_TIMEOUT_S
        with pytest.raises(StoreUnavailable):
            store.query("SELECT 1")

"""`pml replay --from -` as a person ends it: standard input may stay open and say nothing more."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from pml.schemas.codec import encode
from pml.schemas.events import Event
from pml.schemas.identifiers import event_id
from pml.schemas.times import to_rfc3339
from tests.fixtures.patience import PATIENCE_S
from tests.log_writer import START_MS, run_started

# What a shell starts in the background ignores the signal, and so does whatever that starts.
HEEDING = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from pml.streams.cli import main; main()"
)
# More than a pipe holds: once it is written, somebody reads.
LINES = 1_000


def line(number: int) -> bytes:
    data, session = run_started(), f"ses_{number}"
    event = Event(
        id=event_id("local", session, number, 0),
        type=data.TYPE,
        version=data.VERSION,
        tenant="local",
        session_id=session,
        epoch=number,
        run_id=f"run_{number}",
        seq=0,
        offset=number,
        occurred_at=to_rfc3339(START_MS),
        data=data,
    )
    return encode(event) + b"\n"


def test_ctrl_c_ends_a_replay_that_waits_for_its_input(tmp_path: Path) -> None:
    command = (sys.executable, "-c", HEEDING, "replay", "--from", "-")
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe) as replaying:
        assert replaying.stdin is not None
        assert replaying.stderr is not None
        try:
            replaying.stdin.write(b"".join(map(line, range(LINES))))
            replaying.stdin.flush()
            replaying.send_signal(signal.SIGINT)
            assert replaying.wait(PATIENCE_S) == 130
        finally:
            replaying.kill()
        assert b"Traceback" not in replaying.stderr.read()

"""The process that workers are forked from, once it has made their imports.

Imports are most of what a start takes, and most of the memory of a role. This process has one thread, reads
what it shall fork from its standard input, a socket, says there which process that is and how it ended, and
ends with the socket; its forks end with it. `forked.py` is the other end.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from importlib import import_module
from pathlib import Path

import orjson
from setproctitle import setproctitle

from pml.schemas.base import Record
from pml.streams.local.leash import tie

SOCKET = 0


class Fork(Record):
    """`pml` with these arguments and exactly these variables, its output appended to a file."""

    arguments: tuple[str, ...]
    environment: dict[str, str]
    log: Path
    niceness: int = 0


class Told(Record):
    """A process that was forked; with a code: that has ended (negative: the signal that ended it)."""

    pid: int
    code: int | None = None


def main() -> None:
    """Serve; in a fork: be `pml`."""
    _import_roles()
    fork = _serve()
    if fork is not None:
        _become(fork)
        from pml.streams.cli import main as pml

        pml()


def _import_roles() -> None:
    """Python's collector would walk through all of it in each fork, and copy the pages: it is set aside."""
    from pml.streams.worker import ROLES

    import_module("pml.streams.cli.app")
    for place in ROLES.values():
        import_module(place.partition(":")[0])
    gc.collect()
    gc.freeze()


def _serve() -> Fork | None:
    """Fork what is asked for; None at the end, in each fork what it is."""
    signal.signal(signal.SIGCHLD, _tell_ends)
    server = os.getpid()
    for line in open(SOCKET, "rb", closefd=False):  # noqa: SIM115 - it ends with this process
        fork = Fork.model_validate(orjson.loads(line))
        # Who ends at once is told of after it began.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        pid = os.fork()
        if pid == 0:
            _leave(server)
            return fork
        _tell(Told(pid=pid))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    return None


def _leave(server: int) -> None:
    """Nothing of the server's is kept, and the fork ends with it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    tie()
    if os.getppid() != server:  # it was gone before the kernel heard the wish
        os._exit(1)


def _become(fork: Fork) -> None:
    """Be what a shell would have started."""
    os.setsid()
    os.nice(fork.niceness)
    setproctitle(" ".join(("pml", *fork.arguments)))
    os.dup2(os.open(os.devnull, os.O_RDONLY), SOCKET)
    log = os.open(fork.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(log, stream.fileno())
    os.environ.clear()
    os.environ.update(fork.environment)
    sys.argv = ["pml", *fork.arguments]


def _tell_ends(*_: object) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _tell(Told(pid=pid, code=os.waitstatus_to_exitcode(status)))


def _tell(told: Told) -> None:
    os.write(SOCKET, told.model_dump_json().encode() + b"\n")


if __name__ == "__main__":
    main()

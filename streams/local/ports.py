"""Free ports on loopback."""

from __future__ import annotations

import errno
import random
import socket

from pml.schemas.errors import ConfigurationError, PrerequisiteError

HOST = "127.0.0.1"
# Below the range from which the kernel takes the ports of outgoing connections. In that range a client that
# keeps knocking at a stopped server may be given the very port it knocks at, and then holds it itself.
FIRST, LAST = 20_000, 32_000
TRIES = 100


def is_free(port: int, host: str = HOST) -> bool:
    """Whether a server could listen on that port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # as servers do: TIME_WAIT is no hindrance
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
        return True


def free_port(host: str = HOST, besides: tuple[int, ...] = ()) -> int:
    """Any free port that is not one of `besides`.

    Raises:
        PrerequisiteError: none was found.
    """
    for _ in range(TRIES):
        port = random.randint(FIRST, LAST)
        if port not in besides and is_free(port, host):
            return port
    raise PrerequisiteError(
        f"No free port between {FIRST} and {LAST} on {host}: stop something, or name a port."
    )


def choose_port(wanted: int, last: int, besides: tuple[int, ...] = ()) -> int:
    """The port to listen on: `wanted`, or if that is 0 the one of the last start, or any free one.

    Raises:
        ConfigurationError: `wanted` is taken.
        PrerequisiteError: none is free.
    """
    if wanted:
        if not is_free(wanted):
            raise ConfigurationError(
                f"Port {wanted} on {HOST} is taken by another program: stop that, or name another port "
                "or 0 for any free one.",
                port=wanted,
            )
        return wanted
    if last and last not in besides and is_free(last):
        return last
    return free_port(besides=besides)

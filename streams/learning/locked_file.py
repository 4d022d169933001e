"""Files beside the models that several processes hold or change, one after the other."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, TypeVar

import orjson
import structlog

from pml.schemas.errors import ConfigurationError, PMLError

# Whoever lets a model serve reads its bytes and asks the broker twice: some seconds at the most.
ALONE_WITHIN_S = 30.0
_LOOK_AGAIN_S = 0.02

T = TypeVar("T")
log = structlog.get_logger("pml.models")


class ModelsBusy(PMLError):
    """Somebody else has been changing which model serves for too long."""

    code = "MODELS_BUSY"
    retryable = True


@asynccontextmanager
async def alone(file: Path, within_s: float = ALONE_WITHIN_S) -> AsyncIterator[None]:
    """Hold a file while the body runs, as the only one of all processes that hold it.

    Where the folder cannot be written, or its file system knows no locks, nobody can hold anything in it;
    then the body runs all the same.

    Args:
        file: is made where it is not there, with its folder.

    Raises:
        ModelsBusy: another one holds it, and went on to.
    """
    # The lock ends with the file.
    with _opened(file) as stream:
        if stream is not None:
            await _taken(stream, within_s)
        yield


def _opened(file: Path) -> AbstractContextManager[IO[bytes] | None]:
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return file.open("ab")
    except OSError as error:
        _nobody_kept_out(file, error)
        return nullcontext()


async def _taken(stream: IO[bytes], within_s: float) -> None:
    """Not waited for in a thread: one that is cancelled would hold it once it has it."""
    clock = asyncio.get_running_loop().time
    until_s = clock() + within_s
    while True:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return None
        except BlockingIOError:
            if clock() >= until_s:
                raise ModelsBusy(f"{stream.name} is held by another process: try again") from None
            await asyncio.sleep(_LOOK_AGAIN_S)
        except OSError as error:
            return _nobody_kept_out(stream.name, error)


def _nobody_kept_out(file: Path | str, error: OSError) -> None:
    log.warning("nobody can be kept out meanwhile", file=str(file), reason=error.strerror)


def held(file: Path) -> dict[str, Any]:
    """The object in a file; nothing where there is no file.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    try:
        with file.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH)
            return _object(stream.read())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{file} cannot be read: {error}") from None


def changed(file: Path, change: Callable[[dict[str, Any]], T]) -> T:
    """What `change` gives, after the file holds what it made of the object in it.

    Args:
        file: is made where it is not there, with its folder.

    Raises:
        ConfigurationError: the file cannot be read or written.
    """
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with file.open("a+b") as stream:
            # The lock ends with the file.
            fcntl.flock(stream, fcntl.LOCK_EX)
            stream.seek(0)
            told = _object(stream.read())
            found = change(told)
            stream.truncate(0)
            stream.write(orjson.dumps(told, option=orjson.OPT_INDENT_2))
            stream.flush()
            os.fsync(stream.fileno())
            return found
    except (OSError, ValueError, TypeError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"{file} cannot be read and written: {why}") from None


def _object(told: bytes) -> dict[str, Any]:
    found = orjson.loads(told or b"{}")
    if not isinstance(found, dict):
        raise ValueError("there is no object in it")
    return found

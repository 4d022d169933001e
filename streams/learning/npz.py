"""Archives of arrays, as NumPy writes them, that somebody else may have written or a disk has changed."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

# By which NumPy knows an archive: with arrays, without any.
_BEGINNINGS = (b"PK\x03\x04", b"PK\x05\x06")
_SUFFIX = ".npy"
_CHUNK_BYTES = 1 << 20


class Arrays(Mapping[str, NDArray[Any]]):
    """The arrays of an archive by their names, each read when it is asked for, up to its checksum.

    `np.load` leaves off where it has read as much as an array says it has, and so takes also what was
    changed.

    Raises:
        OSError: the archive cannot be read.
        ValueError: it is broken, or one of its arrays is, has Python objects, or has no room in the memory.
        KeyError: it has no array of that name.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        with _told_as_broken("it"):
            self._archive = zipfile.ZipFile(stream)
        members = [member for member in self._archive.infolist() if member.filename.endswith(_SUFFIX)]
        self._members = {member.filename.removesuffix(_SUFFIX): member for member in members}

    def __getitem__(self, name: str) -> NDArray[Any]:
        member = self._members[name]
        with _told_as_broken(f"its array {name}"), self._archive.open(member) as content:
            array: NDArray[Any] = np.lib.format.read_array(content, allow_pickle=False)
            while content.read(_CHUNK_BYTES):
                pass  # its checksum is compared at its end, wherever NumPy believes that to be
            return array

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)


def opened_arrays(stream: IO[bytes]) -> Arrays:
    """The arrays of an npz; the stream stays open as long as they are read.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no archive, or a broken one.
    """
    if stream.read(len(_BEGINNINGS[0])) not in _BEGINNINGS:
        raise ValueError("it is no npz")
    stream.seek(0)
    return Arrays(stream)


@contextmanager
def _told_as_broken(what: str) -> Iterator[None]:
    """What is raised of bytes that nobody meant is of a dozen kinds, from zlib's to Python's own.

    It is not quoted: NumPy tells how to load Python objects all the same.
    """
    try:
        yield
    except OSError:
        raise
    except MemoryError:
        raise ValueError(f"{what} has no room in the memory") from None
    except Exception:
        raise ValueError(f"{what} is broken, or has Python objects in it") from None
